import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { icon } from "../icons.ts";
import { shownPath } from "../question.ts";
import { type Decided, type Detail, type Outcome, type Waiting, answerQuestion, decideReview, loadReview } from "../reviews.ts";
import { visible, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { t } from "../words.ts";
import { PageElement, READ_MS, isForPage } from "./base.ts";
import { type DiffElement, shownCounts } from "./diff-view.ts";
import "./diff-view.ts";
import { countLines } from "../task-fold.ts";

/** What the user has typed into reviews that are not in view. */
const DRAFTS = new Map<string, { detail: Detail; text: string }>();

export function outcomeText(outcome: Outcome | undefined): string {
  if (!outcome) return t("outcomeGone");
  const by = visibleLine(outcome.by, 80) || t("someone");
  const word = { accepted: "outcomeAccepted", rejected: "outcomeRejected", closed: "outcomeClosed", yes: "outcomeYes", session: "outcomeYes", no: "outcomeNo" } as const;
  const problem = outcome.problem ? ` (${visibleLine(outcome.problem)})` : "";
  return t(word[outcome.decision] ?? "outcomeClosed", by) + problem;
}

export function folderOf(item: Waiting): string {
  return item.folders.find((folder) => item.about.startsWith(folder.replace(/\/$/, "") + "/")) ?? "";
}

/** A review or question of a companion, with its answers. Once it has ended it stays, and says who ended it. */
@customElement("isthmus-review")
export class ReviewCard extends PageElement {
  @property({ attribute: false }) item!: Waiting;
  @property({ attribute: false }) outcome: Outcome | undefined;
  @property({ type: Boolean }) hasEnded = false;
  @property({ type: Boolean }) isOff = false;
  @state() private detail: Detail | undefined;
  @state() private sending = "";
  @state() private problem = "";
  @state() private isEditing = false;
  @state() private isEdited = false;
  @state() private isRead = false;
  @query("isthmus-diff") private diff: DiffElement | null | undefined;
  #timer = 0;
  #wasSent = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    clearTimeout(this.#timer);
    this.#keep(this.item.key);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    const before = changed.get("item") as Waiting | undefined;
    if (changed.has("item") && before?.key !== this.item.key) {
      if (before) this.#keep(before.key);
      this.detail = undefined;
      this.sending = this.problem = "";
      this.isEditing = this.isEdited = this.#wasSent = false;
      this.#unread();
      this.#restore();
      if (this.item.kind === "review" && !this.hasEnded) void this.#load();
      else this.#read();
    } else if (before?.isQueued && !this.item.isQueued) {
      void this.#load();  // the change before it is written by now
    }
    if (this.hasEnded) this.sending = "";
  }

  #keep(key: string): void {
    if (this.isEdited && this.detail && this.diff && !this.#wasSent) DRAFTS.set(key, { detail: this.detail, text: this.diff.text });
    else DRAFTS.delete(key);
  }

  #restore(): void {
    const key = this.item.key, draft = DRAFTS.get(key);
    if (!draft) return;
    this.detail = draft.detail;
    this.isEditing = this.isEdited = true;
    void this.updateComplete.then(() => this.diff?.updateComplete).then(() => {
      if (key === this.item.key) this.diff?.edit(draft.text);
    });
  }

  #unread(): void {
    clearTimeout(this.#timer);
    this.isRead = false;
  }

  #read(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => { this.isRead = true; }, READ_MS);
  }

  async #load(): Promise<void> {
    const key = this.item.key;
    this.#unread();
    try {
      const loaded = await loadReview(key);
      if (key !== this.item.key || this.hasEnded) return;
      // What the user has typed stays: the right side is what will be written, whatever the agent proposed since.
      this.detail = this.isEdited && this.detail ? { ...loaded, new: this.detail.new } : loaded;
      this.#read();
    } catch (error) {
      if (key !== this.item.key || (error instanceof ApiError && error.status === 409)) return;
      this.#say(error);
    }
  }

  override render() {
    return this.item.kind === "review" ? this.#review() : this.#question();
  }

  #review() {
    const { item, detail } = this, path = shownPath(item.about, folderOf(item)), agent = visibleLine(item.agent, 80);
    const old = detail?.old ?? undefined, verb = t((detail ? detail.old === null : item.isNew) ? "create" : "change");
    return html`<article class="question" aria-label="${verb} ${path}">
      <div class="card-top">
        <h2 tabindex="-1">${verb} <code dir="auto">${path}</code></h2>
        <dl class="facts">
          <dt>${t("touches")}</dt><dd><code dir="auto">${visible(item.about)}</code></dd>
          <dt>${t("covers")}</dt><dd dir="auto">${t("reviewCovers", agent)}</dd>
        </dl>
      </div>
      ${this.#notice()}
      <div class="card-body" tabindex="-1">
        ${detail ? html`
          <div class="dhead">${icon("file")}<code class="cut" dir="auto">${path}</code> ${shownCounts(countLines(old ?? "", detail.new))}
            ${this.isEdited ? html`<span class="pill acc">${t("edited")}</span>` : nothing}
            <span class="right row">
              ${this.isEdited && !this.hasEnded ? html`<button class="b small quiet" @click=${() => this.diff?.undo()}>${t("undoEdits")}</button>` : nothing}
              ${old === undefined ? nothing : html`<button class="b small quiet wide-only" @click=${() => this.diff?.toggle()}>${icon("sides")}${t("sideBySide")} <kbd>v</kbd></button>`}
            </span>
          </div>
          <isthmus-diff .oldText=${old} .newText=${detail.new} .path=${path} ?editable=${this.isEditing && !this.hasEnded}
            @edited=${() => { this.isEdited = this.diff?.isEdited ?? false; }}></isthmus-diff>`
        : this.hasEnded ? nothing : html`<p class="empty">${t("connecting")}</p>`}
      </div>
      ${this.#problems()}
      ${this.hasEnded ? nothing : html`<div class="actions">
        ${this.#button("accept", t("accept"), "y", "primary", !detail || item.isQueued)}
        <button class="b" ?disabled=${!detail || this.sending !== "" || this.isEditing} @click=${this.#edit}>${t("editFirst")} <kbd>e</kbd></button>
        ${this.#button("reject", t("reject"), "n", "", false)}
      </div>`}
    </article>`;
  }

  #question() {
    const title = visibleLine(this.item.about, 300);
    return html`<article class="question" aria-label=${title}>
      <div class="card-top"><h2 tabindex="-1" dir="auto">${title}</h2>
        <dl class="facts"><dt>${t("covers")}</dt><dd>${t("questionCovers")}</dd></dl></div>
      ${this.#notice()}
      <div class="card-body" tabindex="-1"><pre class="command" tabindex="0">${visible(this.item.text)}</pre></div>
      ${this.#problems()}
      ${this.hasEnded ? nothing : html`<div class="actions">
        ${this.#button("yes", t("allowOnce"), "y", "primary", false)} ${this.#button("no", t("reject"), "n", "", false)}
        <span class="right row wider">${this.#button("session", t("allowSession"), "1", "quiet", false)}</span>
      </div>`}
    </article>`;
  }

  #notice() {
    if (this.hasEnded) {
      return html`<div class="ended" role="status"><p>${outcomeText(this.outcome)}</p>${this.isEdited && !this.#wasSent ? html`<p>${t("keptText")}</p>` : nothing}</div>`;
    }
    return this.item.isQueued ? html`<p class="ended" role="status">${t("queuedReview")}</p>` : nothing;
  }

  #problems() {
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
      ${this.isOff && !this.hasEnded ? html`<p class="problem">${t("offline")}</p>` : nothing}`;
  }

  #button(answer: string, words: string, key: string, more: string, isDisabled: boolean) {
    return html`<button class="b ${more}" ?disabled=${isDisabled || !this.#isReady} @click=${() => void this.#send(answer)}>
      ${this.sending === answer ? t("sending") : words} <kbd>${key}</kbd></button>`;
  }

  get #isReady(): boolean {
    return this.isRead && !this.isOff && !this.hasEnded && this.sending === "";
  }

  #edit = (): void => {
    if (this.detail && !this.hasEnded) this.isEditing = true;
  };

  async #send(answer: string): Promise<void> {
    const { item, detail } = this;
    if (!this.#isReady || (answer === "accept" && (!detail || item.isQueued))) return;
    this.sending = answer;
    this.problem = "";
    try {
      const said = item.kind === "question" ? await answerQuestion(item.key, answer as "yes" | "session" | "no")
        : await decideReview(item.key, answer as "accept" | "reject", detail?.state ?? "", answer === "accept" && this.isEdited ? this.diff?.text : undefined);
      this.#take(said, item.key);
    } catch (error) {
      if (item.key === this.item.key) this.#say(error);
    }
  }

  #take(said: Decided, key: string): void {
    if (said.is === "ended") {
      if (key === this.item.key) this.#wasSent = !said.isLate;
      this.dispatchEvent(new CustomEvent("ended", { detail: { key, ...said }, bubbles: true, composed: true }));
      return;
    }
    if (key !== this.item.key) return;
    this.sending = "";
    this.problem = t("changedMeanwhile");
    void this.#load();
  }

  #say(error: unknown): void {
    this.sending = "";
    this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event) || this.hasEnded) return;
    const isReview = this.item.kind === "review";
    if (event.key === "e" && isReview) this.#edit();
    else if (event.key === "v" && isReview) this.diff?.toggle();
    else if (event.key === "y") void this.#send(isReview ? "accept" : "yes");
    else if (event.key === "n") void this.#send(isReview ? "reject" : "no");
    else if (event.key === "1" && !isReview) void this.#send("session");
    else return;
    event.preventDefault();
  };
}
