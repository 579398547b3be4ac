import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { shownPath } from "../../questions/question.ts";
import {
  type Decided,
  type Detail,
  type Outcome,
  type Waiting,
  acceptReview,
  answerQuestion,
  folderOf,
  loadReview,
  rejectReview,
} from "../../server/reviews.ts";
import { ask } from "../../questions/words.ts";
import { exact, exactLine, visibleLine } from "../../text/safe.ts";
import { ApiError } from "../../server/session.ts";
import { t } from "../../words.ts";
import { countLines } from "../../diff/diffs.ts";
import { EditCard } from "./edit-card.ts";
import { shownCounts } from "../files/counts.ts";
import { outcomeText } from "./outcome.ts";
import type { MenuRow } from "../phone-menu.ts";
import { phoneWord } from "../../phone/words.ts";
import { shortLimit } from "./card-facts.ts";
import "../files/file-before.ts";

/** A review or question of a companion, with its answers. Once it has ended it stays, and says who ended it. */
@customElement("isthmus-review")
export class ReviewCard extends EditCard {
  @property({ attribute: false }) item!: Waiting;
  @property({ attribute: false }) outcome: Outcome | undefined;
  @property({ type: Boolean }) hasEnded = false;
  @state() protected override seen: Detail | undefined;

  protected override get subject(): string {
    return this.item.key;
  }

  protected override get isOver(): boolean {
    return this.hasEnded;
  }

  protected override get isEdit(): boolean {
    return this.seen !== undefined;
  }

  protected override get path(): string {
    return shownPath(this.item.about, folderOf(this.item));
  }

  protected override get carriesWords(): boolean {
    return this.item.isPermission || (this.seen?.reasons ?? false);
  }

  protected override get commentsGo() {
    return this.seen?.reasons ? "rejection" : "nowhere";
  }

  protected override get texts() {
    return { before: this.seen?.old ?? "", after: this.seen?.new ?? "" };
  }

  protected override get commentNote(): string {
    return t(this.seen?.reasons ? "commentsIfRejected" : "commentsNotTaken", visibleLine(this.item.agent, 80));
  }

  protected override get digest(): string {
    return this.seen?.state ?? "";
  }

  protected override get limit(): string {
    return shortLimit(t("reviewCovers", ""));
  }

  /** On a phone the wider answer is in the menu. */
  override get further(): MenuRow[] {
    const { item } = this;
    if (this.isOver || this.isTelling || item.kind === "review" || item.isPermission) return super.further;
    const act = (): void => void this.#send("session");
    return [{ icon: "grant", words: t("allowSession"), note: "", isOff: !this.isReady || !!this.unseen, act }];
  }

  protected override begin(): void {
    super.begin();
    if (this.item.kind === "review" && !this.hasEnded) void this.#load();
    else this.read();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    super.willUpdate(changed);
    const before = changed.get("item") as Waiting | undefined;
    if (before?.key === this.item.key && before.isQueued && !this.item.isQueued) void this.#load(); // the change before it is written by now
    if (this.hasEnded) this.sending = "";
  }

  async #load(): Promise<void> {
    const key = this.item.key;
    this.unread();
    try {
      const loaded = await loadReview(key);
      if (key !== this.item.key || this.hasEnded) return;
      // What the user has typed stays: the right side is what will be written, whatever the agent proposed since.
      this.seen = this.isEdited && this.seen ? { ...loaded, new: this.seen.new } : loaded;
      this.anchor();
      this.readDiff();
    } catch (error) {
      if (key !== this.item.key || (error instanceof ApiError && error.status === 409)) return;
      this.say(error);
    }
  }

  override render() {
    return this.item.kind === "review" ? this.#review() : this.#question();
  }

  #review() {
    const { item, seen: detail, path } = this;
    const agent = visibleLine(item.agent, 80);
    const old = detail?.old ?? undefined;
    const verb = t((detail ? detail.old === null && !detail.before : item.isNew) ? "create" : "change");
    return html`<article class="question" aria-label="${verb} ${path}">
      <div class="card-top">
        <h2 tabindex="-1">${verb} <code dir="auto">${path}</code></h2>
        <isthmus-facts
          .facts=${[
            { name: t("touches"), fact: html`<code dir="auto">${exact(item.about)}</code>` },
            { name: t("covers"), fact: t("reviewCovers", agent) },
          ]}
          .subject=${this.subject}
        ></isthmus-facts>
      </div>
      ${this.#notice()}
      <div class="card-body" tabindex="-1">
        ${detail?.before ? html`<isthmus-before .was=${detail.before} .characters=${detail.new.length}></isthmus-before>` : nothing}
        ${
          detail
            ? this.shownDiff(path, old, detail.new, shownCounts(countLines(old ?? "", detail.new)))
            : this.hasEnded
              ? nothing
              : html`<p class="empty">${t("connecting")}</p>`
        }
      </div>
      ${this.problems()}
      ${
        this.hasEnded
          ? nothing
          : this.isTelling
            ? this.reason(
                t(detail?.reasons ? "reasonTo" : "reasonNot", agent),
                "",
                detail?.reasons ? phoneWord("whyTo", agent) : "",
              )
            : html`${this.hints()}
                <div class="actions">
                  ${this.#answer("accept", t("accept"), "y", "primary")} ${this.unseenButton()} ${this.editButton()}
                  ${this.#rejectButton("reject")}
                </div>`
      }
    </article>`;
  }

  #question() {
    const title = exactLine(this.item.about, 300);
    const { isPermission } = this.item;
    return html`<article class="question" aria-label=${title}>
      <div class="card-top">
        <h2 tabindex="-1" dir="auto">${title}</h2>
        <isthmus-facts
          .facts=${[
            {
              name: t("covers"),
              fact: isPermission ? t("permissionCovers", visibleLine(this.item.agent, 80)) : t("questionCovers"),
            },
          ]}
          .subject=${this.subject}
        ></isthmus-facts>
      </div>
      ${this.#notice()}
      <div class="card-body" tabindex="-1">${this.shownText(this.item.text, title)}</div>
      ${this.problems()}
      ${
        this.hasEnded
          ? nothing
          : this.isTelling
            ? this.reason(
                t("reasonTo", visibleLine(this.item.agent, 80)),
                "",
                phoneWord("whyTo", visibleLine(this.item.agent, 80)),
              )
            : html`${this.hints()}
                <div class="actions">
                  ${this.unseenButton()} ${this.#answer("yes", t("allowOnce"), "y", "primary")}
                  ${this.#rejectButton("no")}
                  ${
                    isPermission
                      ? nothing
                      : html`<span class="right row wider desk-only"
                          >${this.#answer("session", t("allowSession"), "1", "quiet")}</span
                        >`
                  }
                </div>`
      }
    </article>`;
  }

  #notice() {
    if (this.hasEnded) {
      return html`<div class="ended" role="status">
        <p>${outcomeText(this.outcome)}</p>
        ${this.isEdited && !this.wasSent ? html`<p>${t("keptText")}</p>` : nothing}
      </div>`;
    }
    return this.item.isQueued ? html`<p class="ended" role="status">${t("queuedReview")}</p>` : nothing;
  }

  /** Return the button that asks for the reason of a rejection, if its words reach the agent. */
  #rejectButton(answer: "reject" | "no") {
    const words = this.commentCount
      ? t("rejectComments", this.commentCount)
      : this.carriesWords
        ? ask("rejectAsk")
        : t("reject");
    return this.button(words, "n", "", this.sending === answer, true, () => this.#reject(answer));
  }

  #reject(answer: "reject" | "no"): void {
    if (this.carriesWords) this.tell();
    else void this.#send(answer);
  }

  #answer(answer: string, words: string, key: string, more: string) {
    const isWaiting = this.#needsSight(answer);
    return this.button(
      words,
      key,
      more,
      this.sending === answer,
      this.#isPossible(answer),
      () => void this.#send(answer),
      "",
      isWaiting,
    );
  }

  /** Whether an answer waits until all was on the screen. */
  #needsSight(answer: string): boolean {
    return answer !== "reject" && answer !== "no" && this.unseen !== undefined;
  }

  #isPossible(answer: string): boolean {
    return answer !== "accept" || (this.seen !== undefined && !this.item.isQueued);
  }

  async #send(answer: string): Promise<void> {
    const { item, seen: detail } = this;
    if (!this.isReady || !this.#isPossible(answer) || this.#needsSight(answer)) return;
    if (answer === "reject" && this.commentCount) {
      this.tell();
      return;
    }
    await this.#post(answer, () =>
      item.kind === "question"
        ? answerQuestion(item.key, answer as "yes" | "session" | "no")
        : answer === "reject"
          ? rejectReview(item.key)
          : acceptReview(item.key, detail?.state ?? "", this.isEdited ? this.diff?.text : undefined),
    );
  }

  protected override async told(words: string): Promise<void> {
    const { key, kind } = this.item;
    const said = this.carriesWords ? words : "";
    if (this.isReady)
      await this.#post("tell", () => (kind === "question" ? answerQuestion(key, "no", said) : rejectReview(key, said)));
  }

  async #post(name: string, post: () => Promise<Decided>): Promise<void> {
    const key = this.item.key;
    this.sending = name;
    this.problem = "";
    try {
      this.#take(await post(), key);
    } catch (error) {
      if (key === this.item.key) this.say(error);
    }
  }

  #take(said: Decided, key: string): void {
    if (said.is === "ended") {
      if (!said.isLate) this.wasStored(key);
      this.dispatchEvent(new CustomEvent("ended", { detail: { key, ...said }, bubbles: true, composed: true }));
      return;
    }
    if (key !== this.item.key) return;
    this.sending = "";
    this.problem = t("changedMeanwhile");
    void this.#load();
  }

  protected override isAnswer(key: string): boolean {
    return /^[ynN1]$/.test(key);
  }

  protected override pressed(key: string): boolean {
    const isReview = this.item.kind === "review";
    if (key === "y") void this.#send(isReview ? "accept" : "yes");
    else if (key === "n") this.#reject(isReview ? "reject" : "no");
    else if (key === "N") void this.#send(isReview ? "reject" : "no");
    else if (key === "1" && !isReview && !this.item.isPermission) void this.#send("session");
    else return false;
    return true;
  }
}
