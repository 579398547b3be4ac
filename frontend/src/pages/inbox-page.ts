import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Answered, answererOf } from "../client.ts";
import { icon } from "../icons.ts";
import { merged } from "../forms/form.ts";
import { isForm, shownPath } from "../question.ts";
import { visible, visibleLine } from "../safe.ts";
import type { SessionList } from "../sessions.ts";
import type { Question, TaskStore } from "../store.ts";
import { age, clock, t } from "../words.ts";
import { type Outcome, type ReviewStore, type Waiting, folderOf } from "../reviews.ts";
import { PageElement, readdress } from "../parts/base.ts";
import { askedCard } from "../parts/asked-card.ts";
import { aboutLines, askerHead, fromLine } from "../parts/asker.ts";
import { outcomeText } from "../parts/outcome.ts";
import { isForPage } from "../keys.ts";
import { PAGE } from "../place.ts";
import { codeText } from "../parts/code-text.ts";

/** Something that waits or waited: a question of a task, or a review or question of a companion. */
interface Item {
  key: string;
  question?: Question;
  review?: Waiting;
  isAnswered: boolean;
  /** Ids of the calls of the question that wait. */
  open: ReadonlySet<string>;
  /** Who answered the calls of the question that wait no more, as far as that is known. */
  answers: ReadonlyMap<string, Answered>;
  /** Whether it was answered on this page, and whether that is still on its way. */
  isOwn?: boolean;
  isSending?: boolean;
}

const keyOf = (question: Question): string => `${question.task.id}/${question.call.tool_call_id}`;
const idsOf = (question: Question): Set<string> => new Set(question.calls.map((call) => call.tool_call_id));

/** Return the agent or session that wants to edit a file; empty if it wants something else. */
function sourceOf(item: Item | undefined): string {
  if (item?.review) return item.review.kind === "review" ? item.review.source : "";
  const question = item?.question;
  return question?.call.confirmation_request?.file_edit_details && !isForm(question.call)
    ? `session ${question.task.contextId}`
    : "";
}

/** All that waits for the user. What is answered stays in its place, grey, until the page is left. */
@customElement("isthmus-inbox")
export class InboxPage extends PageElement {
  /** Key of the question that the address of the page names, if it names one. */
  @property() address = "";
  @property({ attribute: false }) store!: TaskStore;
  @property({ attribute: false }) sessions!: SessionList;
  @property({ attribute: false }) reviews!: ReviewStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) version = 0;
  /** Name of the agent whose tasks these are. */
  @property() agent = "";
  @state() private chosen = "";
  @state() private isOpen = false;
  /** The files that are answered together, as they were listed. */
  @state() private all: Item[] | undefined;
  #shown: Item[] = [];
  /** Key of the question to be shown once it is known. */
  #wanted = "";
  /** Whether the address was given by this page, so that the one before it is the list. */
  #hasPushed = false;
  /** What is kept in view after its end, so that it is seen how it ended. */
  #kept = "";
  /** The last request for who answered; one at a time, since many questions may end at once. */
  #asking: Promise<void> = Promise.resolve();

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("address")) {
      this.#wanted = this.address === this.chosen ? "" : this.address;
      this.isOpen = this.address !== "";
      this.all = undefined;
      if (!this.address) this.#hasPushed = false;
    }
    const waiting = new Map<string, Item>();
    const none = { isAnswered: false, open: new Set<string>(), answers: new Map<string, Answered>() };
    for (const question of this.store.questions) {
      const item = this.#itemOf(question);
      waiting.set(item.key, item);
    }
    for (const review of this.reviews.waiting) waiting.set(review.key, { ...none, key: review.key, review });
    for (const item of this.#shown) {
      const found = waiting.get(item.key);
      if (!found && !item.isAnswered && (item.review || !item.isOwn) && item.key === this.chosen) this.#kept = item.key;
      const ended = found || !item.isSending ? [...item.open].filter((id) => !found?.open.has(id)) : [];
      for (const id of ended) if (item.question) this.#askWho(item, item.question, id);
      // While its answers are on their way a part of them may have arrived: it stays until all have.
      if (found) Object.assign(item, { ...found, answers: item.answers });
      else if (!item.isSending) Object.assign(item, { isAnswered: true, open: none.open });
    }
    const known = new Set(this.#shown.map((item) => item.key));
    const added = [...waiting].filter(([key]) => !known.has(key)).map(([, item]) => item);
    // New ones go below what is being read: nothing moves under the reader's eyes.
    this.#shown = this.#shown.length ? [...this.#shown, ...added.reverse()] : added;
    const next = this.#shown.find((item) => !item.isAnswered);
    if (this.#wanted && this.#shown.some((item) => item.key === this.#wanted)) {
      this.chosen = this.#wanted;
      this.#wanted = "";
    } else if (this.#wanted && this.#isWholeLoaded) {
      this.#wanted = "";
      this.isOpen = false;
    }
    if (this.chosen !== this.#kept) this.#kept = "";
    if (
      !this.#shown.some(
        (item) => item.key === this.chosen && (!item.isAnswered || item.key === this.#kept || (item.review && !next)),
      )
    ) {
      if (!next) this.isOpen = false;
      this.chosen = next?.key ?? "";
    }
  }

  /** The address follows what is shown: the next question after an answer, or the list. */
  override updated(): void {
    if (this.address && !this.#wanted && this.address !== this.chosen) this.#showAt(this.isOpen ? this.chosen : "");
  }

  /** Whether all that may wait is known. */
  get #isWholeLoaded(): boolean {
    return this.store.isLoaded || this.reviews.isLoaded;
  }

  /** Show a question, and give the page its address; from one question to another the list stays the page before. */
  #open(key: string): void {
    this.all = undefined;
    this.chosen = key;
    this.isOpen = true;
    this.#showAt(key);
  }

  #showAt(key: string): void {
    if (key === this.address) return;
    const path = key ? `${PAGE}question/${encodeURIComponent(key)}` : PAGE;
    this.#hasPushed ||= !this.address;
    readdress(path, !this.address);
  }

  /** Go back to the list. */
  #close = (): void => {
    this.isOpen = false;
    if (this.#hasPushed) history.back();
    else if (this.address) this.#showAt("");
  };

  /** Return the item of a question: what of it was answered while it was shown stays in it. */
  #itemOf(question: Question): Item {
    const open = idsOf(question);
    const rest = { open, answers: new Map<string, Answered>(), isAnswered: false };
    const known = this.#shown.find(
      (item) =>
        item.question?.task.id === question.task.id && item.question.calls.some((call) => open.has(call.tool_call_id)),
    );
    if (!known?.question) return { ...rest, key: keyOf(question), question };
    const calls = merged(known.question.calls, question.calls);
    return { ...rest, key: known.key, question: { ...question, call: calls[0] ?? question.call, calls } };
  }

  override render() {
    const open = this.#shown.filter((item) => !item.isAnswered);
    const answered = this.#shown.filter((item) => item.isAnswered);
    const chosen = this.#shown.find((item) => item.key === this.chosen);
    return html`<main class="contents">
      <section class="pane inbox ${this.isOpen ? "behind" : ""}" aria-label=${t("inbox")}>
        <div class="head">
          <h1>${t("inbox")}</h1>
          <span class="t2 sm">${open.length ? t("wait", open.length) : nothing}</span>
        </div>
        <ul class="scroll">
          ${open.map((item) => this.#anyRow(item))} ${this.#written()}
          ${answered.length ? html`<li class="sect">${t("answeredElsewhere")}</li>` : nothing}
          ${answered.map((item) => this.#anyRow(item))}
          ${
            !this.#shown.length && !this.reviews.written.length && this.#isLoaded
              ? html`<li class="empty">
                  <p>${t("emptyInbox")}</p>
                  <p class="t3">${t("emptyInboxNext")}</p>
                </li>`
              : nothing
          }
        </ul>
      </section>
      <section class="pane surface ${this.isOpen ? "" : "behind"}" aria-label=${t("question")}>
        ${
          this.all
            ? this.#allFiles(this.all)
            : chosen?.review
              ? this.#review(chosen.review, chosen.isAnswered, open)
              : chosen?.question && (!chosen.isAnswered || chosen.key === this.#kept)
                ? html` <div class="head">
                      <button class="b small quiet icon narrow-only" aria-label=${t("back")} @click=${this.#close}>
                        ${icon("back")}
                      </button>
                      ${askerHead(chosen.question, this.sessions, this.agent, this.now, !chosen.isAnswered)}
                      ${
                        chosen.isAnswered
                          ? html`<span class="right">${this.#nextButton(open)}</span>`
                          : html`<span class="right row"
                              >${this.#allButton(chosen)}<span class="xs t3 num wide-only"
                                >${t("placeOf", open.findIndex((item) => item.key === this.chosen) + 1, open.length)}</span
                              ></span
                            >`
                      }
                    </div>
                    ${askedCard(
                      {
                        calls: chosen.question.calls,
                        open: chosen.open,
                        answers: chosen.answers,
                        task: chosen.question.task,
                        taskId: chosen.question.task.id,
                        agent: this.agent,
                        hasEnded: chosen.isAnswered,
                        isOff: !this.store.isReached,
                        more: "",
                        answering: this.#answering,
                        failed: this.#failed,
                        sent: () => this.#sent(chosen.key),
                      },
                      this,
                    )}`
                : html`<div class="empty big">
                    <p>
                      ${this.#shown.length ? t("chooseQuestion") : this.#isLoaded ? t("emptyInbox") : t("connecting")}
                    </p>
                    ${this.#agents()}
                  </div>`
        }
      </section>
    </main>`;
  }

  #answering = (event: CustomEvent<string>): void => {
    const item = this.#shown.find((one) => one.key === event.detail);
    if (item) item.isOwn = item.isSending = true;
  };

  #sent(key: string): void {
    const item = this.#shown.find((one) => one.key === key);
    if (item) item.isSending = false;
    this.requestUpdate();
    this.store.refresh();
  }

  /** An own answer came too late, or did not arrive: who was first is shown. */
  #failed = (event: CustomEvent<string>): void => {
    const item = this.#shown.find((one) => one.key === event.detail);
    if (!item) return;
    item.isOwn = item.isSending = false;
    if (item.isAnswered) this.chosen = this.#kept = item.key;
    this.requestUpdate();
  };

  #askWho(item: Item, { task }: Question, callId: string): void {
    this.#asking = this.#asking.then(async () => {
      if (!this.isConnected) return;
      const found = await answererOf(task.id, task.seq, callId);
      if (found) item.answers = new Map(item.answers).set(callId, found);
      this.requestUpdate();
    });
  }

  get #isLoaded(): boolean {
    return this.store.isLoaded || this.reviews.isLoaded;
  }

  /** The agents that are attached to companions; how to attach one, on the page of a companion. */
  #agents() {
    if (!this.reviews.isLoaded || (!this.reviews.agents.length && this.store.isLoaded)) return nothing;
    const names = this.reviews.agents.map((name) => visibleLine(name, 60)).join(", ");
    return html`<p class="t3 sm" dir=${names ? "auto" : nothing}>
      ${names ? t("attached", names) : codeText(t("nobodyAttached"))}
    </p>`;
  }

  #review(item: Waiting, hasEnded: boolean, open: Item[]) {
    return html` <div class="head">
        <button class="b small quiet icon narrow-only" aria-label=${t("back")} @click=${this.#close}>
          ${icon("back")}
        </button>
        <span class="cut" dir="auto">${visibleLine(item.agent, 80)}</span>
        ${hasEnded ? nothing : html`<span class="pill acc">${t("waits")} · ${age(item.at, this.now)}</span>`}
        ${hasEnded ? nothing : html`<span class="right">${this.#allButton(open.find((other) => other.key === item.key))}</span>`}
        <span class="${hasEnded ? "right" : ""} xs t3 num"
          >${
            hasEnded
              ? this.#nextButton(open)
              : `${open.findIndex((other) => other.key === item.key) + 1} / ${open.length}`
          }</span
        >
      </div>
      <isthmus-review
        .item=${item}
        .outcome=${this.reviews.outcome(item.key)}
        ?hasEnded=${hasEnded}
        ?isOff=${!this.reviews.isReached}
        ?takesKeys=${true}
        @ended=${this.#ended}
      ></isthmus-review>`;
  }

  /** What was written without a review: nothing waits for an answer, so it is not counted. */
  #written() {
    const { written } = this.reviews;
    return written.length
      ? html`<li class="sect">${t("writtenSection")}</li>
          ${written.map(({ id, folders, written: { agents, files, since } }) => {
            const names = agents.map((name) => visibleLine(name, 60)).join(", ") || t("anAgent");
            return html`<li class="item">
              <a class="cover" href="${PAGE}written/${id}">
                <span class="what"
                  >${files === 1 ? t("wroteFile", names, clock(since)) : t("wroteFiles", names, files, clock(since))}</span
                >
                <span class="peek cut" dir="auto">${visible(folders[0] ?? "")}</span></a
              >
            </li>`;
          })}`
      : nothing;
  }

  /** The open edits of the same agent or session as an item. */
  #groupOf(item: Item | undefined): Item[] {
    const source = sourceOf(item);
    return source ? this.#shown.filter((one) => !one.isAnswered && sourceOf(one) === source) : [];
  }

  /** Return the button that leads from an answered item to the first open one. */
  #nextButton(open: Item[]) {
    return open.length
      ? html`<button class="b small" @click=${() => this.#choose(open[0])}>${t("nextOne")} <kbd>j</kbd></button>`
      : nothing;
  }

  #allButton(item: Item | undefined) {
    const count = this.#groupOf(item).length;
    return count > 1
      ? html`<button class="b small" @click=${this.#openAll}>${t("allOf", count)} <kbd>⇧A</kbd></button>`
      : nothing;
  }

  #openAll = (): void => {
    const group = this.#groupOf(this.#shown.find((item) => item.key === this.chosen));
    if (group.length < 2) return;
    void import("../parts/all-files.ts").then(
      () => {
        this.all = group.map((item) => ({ ...item }));
        this.isOpen = true;
      },
      () => undefined,
    );
  };

  #allFiles(all: Item[]) {
    const questions = all.flatMap((item) => item.question ?? []);
    const reviews = all.flatMap((item) => item.review ?? []);
    const close = (): void => {
      this.all = undefined;
    };
    const name = reviews[0]?.agent ?? (questions[0] ? this.sessions.titleOf(questions[0].task) : "");
    return html`<div class="head">
        <button class="b small quiet icon" aria-label=${t("back")} @click=${close}>${icon("back")}</button>
        <span class="cut" dir="auto">${visibleLine(name, 80)}</span>
      </div>
      <isthmus-all
        .questions=${questions}
        .reviews=${reviews}
        .name=${name}
        ?takesKeys=${true}
        ?isOff=${questions.length ? !this.store.isReached : !this.reviews.isReached}
        @closed=${close}
        @sent=${() => this.store.refresh()}
        @ended=${this.#ended}
      ></isthmus-all>`;
  }

  /** After an own answer the next one is shown; what ended elsewhere stays, with who ended it. */
  #ended = (event: CustomEvent<{ key: string; outcome: Outcome | null; isLate: boolean }>): void => {
    const { key, outcome, isLate } = event.detail;
    const item = this.#shown.find((one) => one.key === key);
    if (item) item.isAnswered = true;
    this.#kept = isLate || outcome?.problem ? key : "";
    if (outcome) this.reviews.note(outcome);
    else this.reviews.refresh();
    this.requestUpdate();
  };

  #choose(item: Item | undefined): void {
    if (!item) return;
    this.chosen = item.key;
    if (this.address) this.#showAt(item.key);
  }

  #anyRow(item: Item) {
    const { review, question, isAnswered } = item;
    if (!review) return question ? this.#row(item, question) : nothing;
    const isChosen = item.key === this.chosen;
    const what =
      review.kind === "review"
        ? `${t(review.isNew ? "create" : "change")} ${shownPath(review.about, folderOf(review))}`
        : visibleLine(review.about, 160);
    return html`<li
      class="item ${isChosen ? "on" : ""} ${isAnswered ? "done" : ""}"
      aria-current=${isChosen ? "true" : nothing}
    >
      <button
        class="cover"
        @click=${() => {
          this.#kept = isAnswered ? item.key : "";
          this.#open(item.key);
        }}
      >
        <span class="from"
          ><b class="cut" dir="auto">${visibleLine(review.agent, 80)}</b><time>${age(review.at, this.now)}</time></span
        >
        <span class="what cut" dir="auto">${what}</span>
        <span class="peek cut" dir="auto"
          >${isAnswered ? outcomeText(this.reviews.outcome(item.key)) : visible(folderOf(review))}</span
        >
      </button>
    </li>`;
  }

  #row({ key, isAnswered, answers }: Item, question: Question) {
    const { what, peek } = aboutLines(question);
    const by = isAnswered ? ([...answers.values()].at(-1)?.by ?? "") : "";
    const isChosen = key === this.chosen && !isAnswered;
    return html`<li
      class="item ${isChosen ? "on" : ""} ${isAnswered ? "done" : ""}"
      aria-current=${isChosen ? "true" : nothing}
    >
      <button class="cover" ?disabled=${isAnswered} @click=${() => this.#open(key)}>
        ${fromLine(question, this.sessions, this.agent, this.now)}
        <span class="what cut" dir="auto">${what}</span>
        <span class="peek cut" dir="auto">${by ? t("answered", visibleLine(by, 60)) : peek}</span>
      </button>
    </li>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (this.all || !isForPage(event)) return;
    const open = this.#shown.filter((item) => !item.isAnswered);
    const at = open.findIndex((item) => item.key === this.chosen);
    if (event.key === "j" || event.key === "k") {
      this.#choose(open[Math.max(0, Math.min(open.length - 1, at + (event.key === "j" ? 1 : -1)))]);
    } else if (event.key === "A") this.#openAll();
    else if (event.key === "Escape" && this.isOpen) this.#close();
    else return;
    event.preventDefault();
  };
}
