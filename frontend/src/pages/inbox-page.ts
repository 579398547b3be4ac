import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { answererOf } from "../server/task-stream.ts";
import { MARK, icon } from "../frame/icons.ts";
import { choicesOf, isListed } from "../inbox/filter.ts";
import { type Item, InboxItems } from "../inbox/items.ts";
import { listHead } from "../inbox/list-head.ts";
import type { Gesture } from "../gestures/recogniser.ts";
import { watchTouch } from "../gestures/touch.ts";
import "../inbox/past-question.ts";
import { itemRow } from "../inbox/rows.ts";
import { loadingRows } from "../parts/loading.ts";
import type { TaskRow } from "../server/protocol.ts";
import { fileName, isForm, shownPath } from "../questions/question.ts";
import { ask } from "../questions/words.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { type SessionList, sessionPath } from "../server/sessions.ts";
import type { Question, TaskStore } from "../server/store.ts";
import { age, clock, t } from "../words.ts";
import "../styles/question.css";
import { type Outcome, type ReviewStore, type Waiting, folderNameOf, folderOf } from "../server/reviews.ts";
import type { AnswerCard } from "../parts/cards/answer-card.ts";
import { PageElement, readdress } from "../parts/base.ts";
import { askedCard } from "../parts/cards/asked-card.ts";
import { askerHead, companionHead, sheetLines } from "../parts/cards/asker.ts";
import { sheetHead } from "../parts/phone-head.ts";
import type { MenuRow } from "../parts/phone-menu.ts";
import { inOrder, isLater, setLater } from "../phone/later.ts";
import { PhoneWatch } from "../phone/phone.ts";
import { phoneWord } from "../phone/words.ts";
import { questionPath } from "../routes.ts";
import { isForPage } from "../frame/keys.ts";
import { PAGE } from "../place.ts";
import { codeText } from "../parts/code-text.ts";

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
  /** Whether all that may wait is known, of tasks and of companions. */
  @property({ type: Boolean }) isWhole = false;
  /** Name of the agent whose tasks these are. */
  @property() agent = "";
  @state() private chosen = "";
  @state() private isOpen = false;
  /** The files that are answered together, as they were listed. */
  @state() private all: Item[] | undefined;
  /** The filter of the list, and the words that are searched for; undefined without a search. */
  @state() private filter = "";
  @state() private search: string | undefined;
  #items = new InboxItems();
  /** Key of the question to be shown once it is known. */
  #wanted = "";
  /** Whether the address was given by this page, so that the one before it is the list. */
  #hasPushed = false;
  /** Key of the question at the address that does not wait, or not any more. */
  #past = "";
  /** What is kept in view after its end, so that it is seen how it ended. */
  #kept = "";
  #phone = new PhoneWatch(this);
  #unwatch: (() => void) | undefined;
  /** Key of the question whose address was copied. */
  #copied = "";
  /** The last request for who answered; one at a time, since many questions may end at once. */
  #asking: Promise<void> = Promise.resolve();

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    this.#unwatch = watchTouch(this, { onGesture: this.#touched, onButtons: true });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.#unwatch?.();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("address")) {
      this.#wanted = this.address === this.chosen ? "" : this.address;
      this.isOpen = this.address !== "";
      this.all = undefined;
      this.#past = "";
      if (!this.address) this.#hasPushed = false;
    }
    const loaded = { questions: this.store.isLoaded, reviews: this.reviews.isLoaded };
    const { gone, ended } = this.#items.take(this.store.questions, this.reviews.waiting, loaded, Date.now());
    for (const item of gone) if ((item.review || !item.isOwn) && item.key === this.chosen) this.#kept = item.key;
    for (const { item, question, callId } of ended) this.#askWho(item, question, callId);
    if (this.#items.fresh.some((item) => item.key === this.#wanted)) this.#items.showFresh();
    if (!this.#items.open.length) this.filter = "";
    const [next] = this.#listed;
    if (this.#wanted && this.#items.shown.some((item) => item.key === this.#wanted)) {
      this.chosen = this.#wanted;
      if (this.#items.find(this.chosen)?.isAnswered) this.#kept = this.chosen;
      this.#wanted = "";
    } else if (this.#wanted && this.isWhole) {
      this.#past = this.#wanted;
      this.#wanted = "";
    }
    if (this.chosen !== this.#kept) this.#kept = "";
    if (this.#past) {
      this.chosen = "";
    } else if (
      !this.#items.shown.some(
        (item) => item.key === this.chosen && (!item.isAnswered || item.key === this.#kept || (item.review && !next)),
      )
    ) {
      if (!next && !this.#wanted) this.isOpen = false;
      this.chosen = next?.key ?? "";
    }
  }

  /** The address follows what is shown: the next question after an answer, or the list. */
  override updated(): void {
    if (this.address && !this.#wanted && !this.#past && this.address !== this.chosen)
      this.#showAt(this.isOpen ? this.chosen : "");
  }

  /** Show a question, and give the page its address; from one question to another the list stays the page before. */
  #show(key: string): void {
    this.all = undefined;
    this.#past = "";
    this.chosen = key;
    this.isOpen = true;
    this.#showAt(key);
  }

  #showAt(key: string): void {
    if (key === this.address) return;
    const path = key ? PAGE + questionPath(key) : PAGE;
    this.#hasPushed ||= !this.address;
    readdress(path, !this.address);
  }

  /** Go back to the list. */
  #close = (): void => {
    this.isOpen = false;
    if (this.#hasPushed) history.back();
    else if (this.address) this.#showAt("");
  };

  /** The items that wait and that the filter lists. */
  get #listed(): Item[] {
    return inOrder(this.#items.open).filter((item) => this.#isListed(item));
  }

  #isListed(item: Item): boolean {
    const session = item.question ? this.sessions.titleOf(item.question.task) : "";
    return isListed(item, this.filter, this.search ?? "", this.agent, session);
  }

  override render() {
    const open = this.#listed;
    const chosen = this.#items.find(this.chosen);
    return html`<main class="contents">
      <section class="pane inbox ${this.isOpen ? "behind" : ""}" aria-label=${t("inbox")}>
        ${this.#head()} ${this.#newButton()} ${this.#list(open)}
      </section>
      <section class="pane surface asked ${this.isOpen ? "" : "behind"}" aria-label=${t("question")}>
        ${
          this.all
            ? this.#allFiles(this.all)
            : this.#past
              ? this.#ofPast(this.#past)
              : chosen?.review
                ? this.#review(chosen.review, chosen.isAnswered, open)
                : chosen?.question && (!chosen.isAnswered || chosen.key === this.#kept)
                  ? html`${this.#questionHead(chosen, chosen.question, open)}
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
                  : this.#nothingChosen(open.length > 0)
        }
      </section>
    </main>`;
  }

  /** A question that does not wait; if it does, but is older than what the list has, it is shown. */
  #ofPast(key: string) {
    const head = this.#phone.isPhone
      ? sheetHead({ title: ask("pastTitle"), place: "", age: "" }, this.#close, nothing)
      : html`<div class="head narrow-only">${this.#back()}</div>`;
    return html`${head}<isthmus-past-question
        .key=${key}
        .reviews=${this.reviews}
        .sessions=${this.sessions}
        @waits=${({ detail }: CustomEvent<TaskRow>) => {
          this.#past = "";
          this.#wanted = key;
          this.store.put(detail);
        }}
      ></isthmus-past-question>`;
  }

  get #waiting(): number {
    return this.#items.open.length + this.#items.fresh.length;
  }

  /** Return the place of a question among all that wait, in words. */
  #placeOf(key: string): string {
    return t("placeOf", inOrder(this.#items.open).findIndex((item) => item.key === key) + 1, this.#waiting);
  }

  #head() {
    const { agents, kinds } = choicesOf(this.#items.open, this.agent);
    return listHead({
      waiting: this.#waiting,
      agents,
      kinds,
      filter: this.filter,
      search: this.search,
      filtered: (filter) => {
        this.filter = filter;
      },
      searched: (search) => this.#search(search),
    });
  }

  #search(search: string | undefined): void {
    const isNew = this.search === undefined && search !== undefined;
    this.search = search;
    if (isNew) void this.updateComplete.then(() => this.querySelector<HTMLElement>(".list-search input")?.focus());
  }

  #newButton() {
    const { length } = this.#items.fresh;
    return length
      ? html`<button class="new" @click=${this.#showFresh}>
          ${icon("up")}<span>${length === 1 ? ask("newQuestion") : ask("newQuestions", length)}</span
          ><kbd class="right">.</kbd>
        </button>`
      : nothing;
  }

  #showFresh = (): void => {
    this.#items.showFresh();
    this.requestUpdate();
    this.querySelector(".inbox .scroll")?.scrollTo({ top: 0 });
  };

  #list(open: Item[]) {
    const answered = this.#items.answered;
    const isEmpty = !this.#items.shown.length && !this.reviews.written.length;
    return html`<ul class="scroll" aria-label=${t("inbox")}>
      ${isEmpty && !this.#isLoaded ? loadingRows(this.store.isReached, ask("notLoaded")) : open.map((item) => this.#anyRow(item))}
      ${
        !open.length && this.#items.open.length
          ? html`<li class="empty">
              <p>${ask("nothingFound")}</p>
              <button class="b small" @click=${this.#showAll}>${ask("showAll")}</button>
            </li>`
          : nothing
      }
      ${this.#written()} ${answered.length ? html`<li class="sect">${ask("answeredHere")}</li>` : nothing}
      ${answered.map((item) => this.#anyRow(item))}
      ${
        isEmpty && this.#isLoaded
          ? html`<li class="empty">
              <p>${t("emptyInbox")}</p>
              <p class="t3">${t("emptyInboxNext")}</p>
            </li>`
          : nothing
      }
    </ul>`;
  }

  #showAll = (): void => {
    this.filter = "";
    this.search = undefined;
  };

  /** What stands in place of a question: that none waits, or how to choose one. */
  #nothingChosen(isChoice: boolean) {
    const answered = this.#items.answered.length;
    const working = this.store.active.filter((row) => row.state === "working").length;
    const title = isChoice
      ? t("chooseQuestion")
      : !this.#isLoaded
        ? t("connecting")
        : answered && !this.#items.open.length
          ? answered === 1
            ? ask("oneAnswered")
            : ask("allAnswered", answered)
          : t("emptyInbox");
    const next = working === 1 ? ask("oneWorks") : working ? ask("someWork", working) : t("emptyInboxNext");
    return html`<div class="empty big">
      ${isChoice || !this.#isLoaded ? nothing : MARK}
      <p class="md sb">${title}</p>
      ${isChoice || !this.#isLoaded ? nothing : html`<p class="t3">${next}</p>`} ${this.#agents()}
    </div>`;
  }

  #answering = (event: CustomEvent<string>): void => {
    const item = this.#items.find(event.detail);
    if (item) item.isOwn = item.isSending = true;
  };

  #sent(key: string): void {
    const item = this.#items.find(key);
    if (item) item.isSending = false;
    this.requestUpdate();
    this.store.refresh();
  }

  /** An own answer came too late, or did not arrive: who was first is shown. */
  #failed = (event: CustomEvent<string>): void => {
    const item = this.#items.find(event.detail);
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

  #questionHead(item: Item, question: Question, open: Item[]) {
    const { isAnswered } = item;
    if (this.#phone.isPhone)
      return sheetHead(
        sheetLines(question, this.sessions, this.agent, this.now),
        this.#close,
        isAnswered ? this.#nextButton(open) : this.#more(item),
      );
    return html`<div class="head">
      ${this.#back()} ${askerHead(question, this.sessions, this.agent, this.now, !isAnswered)}
      ${
        isAnswered
          ? html`<span class="right">${this.#nextButton(open)}</span>`
          : html`<span class="right row"
              >${this.#allButton(item)}<span class="xs t3 num wide-only">${this.#placeOf(item.key)}</span></span
            >`
      }
    </div>`;
  }

  #reviewHead(item: Waiting, hasEnded: boolean, open: Item[]) {
    const shown = open.find(({ key }) => key === item.key);
    const agent = visibleLine(item.agent, 80);
    const waits = age(item.at, this.now);
    if (this.#phone.isPhone) {
      const file = fileName(shownPath(item.about, folderOf(item)));
      const title =
        item.kind === "review" ? `${t(item.isNew ? "create" : "change")} ${file}` : visibleLine(item.about, 160);
      return sheetHead(
        { title, place: agent, age: hasEnded ? "" : waits },
        this.#close,
        shown ? this.#more(shown) : this.#nextButton(open),
      );
    }
    return html`<div class="head">
      ${this.#back()} ${companionHead(agent, folderNameOf(item), waits, !hasEnded)}
      ${hasEnded ? nothing : html`<span class="right">${this.#allButton(shown)}</span>`}
      <span class="${hasEnded ? "right" : ""} xs t3 num"
        >${hasEnded ? this.#nextButton(open) : this.#placeOf(item.key)}</span
      >
    </div>`;
  }

  #back() {
    return html`<button class="b small quiet icon narrow-only" aria-label=${t("back")} @click=${this.#close}>
      ${icon("back")}
    </button>`;
  }

  // further actions on a phone

  #more(item: Item) {
    return html`<isthmus-more
      .subject=${item.key}
      .note=${this.#card?.hasGestures ? phoneWord("gestures") : ""}
      .rows=${() => [...(this.#card?.further ?? []), ...this.#rowsOf(item)]}
    ></isthmus-more>`;
  }

  get #card(): AnswerCard | null {
    return this.querySelector<AnswerCard>(".asked > :is(isthmus-question, isthmus-form, isthmus-review)");
  }

  /** What can be done with a question beside answering it. */
  #rowsOf(item: Item): MenuRow[] {
    const { key, question } = item;
    const isPutOff = isLater(key);
    const rows: MenuRow[] = [];
    const count = this.#groupOf(item).length;
    if (count > 1) rows.push({ icon: "sides", words: t("allOf", count), note: "", act: this.#openAll });
    rows.push({
      icon: isPutOff ? "undo" : "history",
      words: phoneWord(isPutOff ? "notLater" : "later"),
      note: phoneWord(isPutOff ? "notLaterNote" : "laterNote"),
      act: () => this.#putOff(key, !isPutOff),
    });
    if (question) {
      const { contextId, id } = question.task;
      const title = visibleLine(this.sessions.titleOf(question.task), 80) || t("session");
      const href = sessionPath(contextId, id);
      rows.push({ icon: "lines", words: phoneWord("openSession"), note: phoneWord("atThisCall", title), href });
    }
    const address = location.origin + PAGE + questionPath(key);
    // A page that came without encryption may not write to the clipboard.
    if (navigator.clipboard)
      rows.push({
        icon: "link",
        words: this.#copied === key ? t("copied") : phoneWord("copyAddress"),
        note: address.replace(/^\w+:\/\//, ""),
        stays: true,
        act: () => {
          this.#copied = key;
          void navigator.clipboard.writeText(address);
        },
      });
    return rows;
  }

  /** A swipe to the left over a row puts its question off, or back to its place. */
  #touched = (gesture: Gesture, target: Element): boolean => {
    for (const one of this.querySelectorAll(".item.near")) one.classList.remove("near");
    const row = target.closest<HTMLElement>(".item[data-swipe]");
    const key = row?.dataset.key;
    if (!row || !key || !("direction" in gesture) || gesture.direction !== "left") return false;
    if (gesture.kind === "swipe") this.#putOff(key, !isLater(key));
    else row.classList.add("near");
    return gesture.kind === "swipe";
  };

  /** Put a question off to the end of the list, or back to its place; another one is shown then, if there is one. */
  #putOff(key: string, isOff: boolean): void {
    setLater(key, isOff);
    this.requestUpdate();
    if (!isOff || key !== this.chosen) return;
    const [next] = this.#listed;
    if (next && !isLater(next.key)) this.#choose(next);
    else this.#close();
  }

  #review(item: Waiting, hasEnded: boolean, open: Item[]) {
    return html`${this.#reviewHead(item, hasEnded, open)}
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
    return source ? this.#items.open.filter((one) => sourceOf(one) === source) : [];
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
    const group = this.#groupOf(this.#items.find(this.chosen));
    if (group.length < 2) return;
    void import("../parts/cards/all-files.ts").then(
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
    const item = this.#items.find(key);
    if (item) Object.assign(item, { isAnswered: true, endedAt: Date.now() });
    this.#kept = isLate || outcome?.problem ? key : "";
    if (outcome) this.reviews.note(outcome);
    else this.reviews.refresh();
    this.requestUpdate();
  };

  #choose(item: Item | undefined): void {
    if (!item) return;
    this.#past = "";
    this.chosen = item.key;
    if (this.address) this.#showAt(item.key);
  }

  #anyRow(item: Item) {
    return itemRow(item, {
      isChosen: item.key === this.chosen && (!item.isAnswered || item.review !== undefined || item.key === this.#kept),
      agent: this.agent,
      sessions: this.sessions,
      outcome: this.reviews.outcome(item.key),
      now: this.now,
      swipe: this.#phone.isPhone && !item.isAnswered ? phoneWord(isLater(item.key) ? "notLater" : "later") : "",
      open: () => {
        this.#kept = item.isAnswered ? item.key : "";
        this.#show(item.key);
      },
    });
  }

  #press = (event: KeyboardEvent): void => {
    if (this.all || !isForPage(event)) return;
    const open = this.#listed;
    const at = open.findIndex((item) => item.key === this.chosen);
    if (event.key === "j" || event.key === "k") {
      this.#choose(open[Math.max(0, Math.min(open.length - 1, at + (event.key === "j" ? 1 : -1)))]);
    } else if (event.key === "A") this.#openAll();
    else if (event.key === "." && this.#items.fresh.length) this.#showFresh();
    else if (event.key === "/" && this.#items.open.length) this.#search("");
    else if (event.key === "Escape" && this.isOpen) this.#close();
    else return;
    event.preventDefault();
  };
}
