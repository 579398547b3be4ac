import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../icons.ts";
import { factsOf } from "../question.ts";
import { visibleLine } from "../safe.ts";
import type { Question, TaskStore } from "../store.ts";
import { age, t } from "../words.ts";
import { PageElement, isForPage } from "../parts/base.ts";
import { countsOf } from "../parts/diff-view.ts";
import "../parts/question-card.ts";

const keyOf = (question: Question): string => `${question.task.id}/${question.call.tool_call_id}`;

/** All that waits for the user. What is answered stays in its place, grey, until the page is left. */
@customElement("isthmus-inbox")
export class InboxPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) version = 0;
  @state() private chosen = "";
  @state() private isOpen = false;
  #shown: { key: string; question: Question; isAnswered: boolean }[] = [];

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
  }

  override willUpdate(): void {
    const waiting = new Map(this.store.questions.map((question) => [keyOf(question), question]));
    for (const item of this.#shown) {
      const question = waiting.get(item.key);
      item.isAnswered = question === undefined;
      if (question) item.question = question;
    }
    const known = new Set(this.#shown.map((item) => item.key));
    const added = [...waiting].filter(([key]) => !known.has(key)).map(([key, question]) => ({ key, question, isAnswered: false }));
    // New ones go below what is being read: nothing moves under the reader's eyes.
    this.#shown = this.#shown.length ? [...this.#shown, ...added.reverse()] : added;
    if (!this.#shown.some((item) => item.key === this.chosen && !item.isAnswered)) {
      const next = this.#shown.find((item) => !item.isAnswered);
      if (!next) this.isOpen = false;
      this.chosen = next?.key ?? "";
    }
  }

  override render() {
    const open = this.#shown.filter((item) => !item.isAnswered), answered = this.#shown.filter((item) => item.isAnswered);
    const chosen = this.#shown.find((item) => item.key === this.chosen);
    return html`
      <section class="pane inbox ${this.isOpen ? "behind" : ""}" aria-label=${t("inbox")}>
        <div class="head"><h1>${t("inbox")}</h1><span class="t2 sm">${open.length ? t("wait", open.length) : nothing}</span></div>
        <ul class="scroll">
          ${open.map((item) => this.#row(item.key, item.question, false))}
          ${answered.length ? html`<li class="sect">${t("answeredElsewhere")}</li>` : nothing}
          ${answered.map((item) => this.#row(item.key, item.question, true))}
          ${!this.#shown.length && this.store.isLoaded ? html`<li class="empty"><p>${t("emptyInbox")}</p><p class="t3">${t("emptyInboxNext")}</p></li>` : nothing}
        </ul>
      </section>
      <main class="pane surface ${this.isOpen ? "" : "behind"}">
        ${chosen && !chosen.isAnswered ? html`
          <div class="head">
            <button class="b small quiet icon narrow-only" aria-label=${t("back")} @click=${() => { this.isOpen = false; }}>${icon("back")}</button>
            <a class="cut" href="/ui/task/${chosen.question.task.id}" dir="auto">${visibleLine(chosen.question.task.title) || t("tasks")}</a>
            <span class="pill acc">${t("waits")} · ${age(chosen.question.task.changedAt, this.now)}</span>
            <span class="right xs t3 num">${open.findIndex((item) => item.key === this.chosen) + 1} / ${open.length}</span>
          </div>
          <isthmus-question .call=${chosen.question.call} .taskId=${chosen.question.task.id} .workspace=${chosen.question.task.workspace}
            ?isOff=${!this.store.isReached} ?takesKeys=${true} @sent=${() => this.store.refresh()}></isthmus-question>`
        : html`<div class="empty big"><p>${this.#shown.length ? t("chooseQuestion") : this.store.isLoaded ? t("emptyInbox") : t("connecting")}</p></div>`}
      </main>`;
  }

  #row(key: string, { task, call }: Question, isAnswered: boolean) {
    const facts = factsOf(call, task.workspace), diff = call.confirmation_request?.file_edit_details;
    const isChosen = key === this.chosen && !isAnswered;
    return html`<li class="item ${isChosen ? "on" : ""} ${isAnswered ? "done" : ""}" aria-current=${isChosen ? "true" : nothing}>
      <button class="cover" ?disabled=${isAnswered} @click=${() => { this.chosen = key; this.isOpen = true; }}>
        <span class="from"><b class="cut" dir="auto">${visibleLine(task.title, 80)}</b><time>${age(task.changedAt, this.now)}</time></span>
        <span class="what cut" dir="auto">${facts.verb} ${facts.object}</span>
        <span class="peek cut">${diff ? countsOf(diff.old_content, diff.new_content) : nothing} ${facts.touches}</span>
      </button></li>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    const open = this.#shown.filter((item) => !item.isAnswered), at = open.findIndex((item) => item.key === this.chosen);
    if (event.key === "j" || event.key === "k") {
      const next = open[Math.max(0, Math.min(open.length - 1, at + (event.key === "j" ? 1 : -1)))];
      if (next) this.chosen = next.key;
    } else if (event.key === "Escape" && this.isOpen) this.isOpen = false;
    else return;
    event.preventDefault();
  };
}
