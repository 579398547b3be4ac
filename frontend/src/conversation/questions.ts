// The questions of the session in view: each stands in the conversation at its call, and one of them takes the keys.

import { html, nothing } from "lit";
import { icon, stateMark } from "../frame/icons.ts";
import { askedCard, askedLink } from "../parts/cards/asked-card.ts";
import type { PageElement } from "../parts/base.ts";
import type { FormCard } from "../parts/cards/form-card.ts";
import type { ItemList } from "../parts/rows/item-list.ts";
import type { QuestionCard } from "../parts/cards/question-card.ts";
import { PAGE } from "../place.ts";
import { questionPath } from "../routes.ts";
import type { CallItem, Item } from "../task/task-fold.ts";
import { COMMA, age, t } from "../words.ts";
import { AskedQuestions, type Place, type ShownQuestion, beyondView, keyedOf, nextAfter } from "./asked-questions.ts";
import type { SessionInView } from "./in-view.ts";

export type QuestionsPage = SessionInView &
  PageElement & {
    /** Name of the agent. */
    readonly agent: string;
    readonly now: number;
    readonly list: ItemList | null | undefined;
    /** Draw the rows anew. */
    redraw(): void;
  };

/** Below this width a question has a page of its own. */
const NARROW = "(max-width: 719px)";

/** Return the key of the item at which a question stands. */
const itemKeyOf = (question: ShownQuestion): string => `${question.taskId}/c:${question.calls[0]?.tool_call_id ?? ""}`;

export class Questions {
  #asked = new AskedQuestions();
  #places: ReadonlyMap<string, Place> = new Map<string, Place>();
  #focused = "";
  /** Question that is led away from, as it was answered here, and what stood when it was. */
  #answered: { key: string; before: readonly ShownQuestion[] } | undefined;
  #narrow = matchMedia(NARROW);

  constructor(private readonly page: QuestionsPage) {}

  attach(): void {
    this.#narrow.addEventListener("change", this.#changed);
  }

  detach(): void {
    this.#narrow.removeEventListener("change", this.#changed);
  }

  reset(): void {
    this.#asked.reset();
    this.#places = new Map();
    this.#answered = undefined;
  }

  /** Take what is open now. */
  take(): void {
    this.#asked.take(this.page.stream.questions, (key) => this.#isHeld(key));
  }

  /** Ids of the calls that wait. */
  get openIds(): ReadonlySet<string> {
    return new Set(this.page.stream.questions.flatMap(({ calls }) => calls.map((call) => call.tool_call_id)));
  }

  /** Key of the item of the first question that waits; empty without one. */
  get waiting(): string {
    const [first] = this.#asked.open;
    return first ? itemKeyOf(first) : "";
  }

  /** Return the card of a question in place of its call; undefined if an item is drawn as it is. */
  cardAt(item: Item): unknown {
    if (item.is !== "call") return undefined;
    const question = this.#asked.shown.find((shown) =>
      shown.calls.some((call) => item.key === `${shown.taskId}/c:${call.tool_call_id}`),
    );
    if (!question) return undefined;
    return itemKeyOf(question) === item.key ? this.#card(question, item) : nothing;
  }

  /** Other items may be in view, or the focus may be elsewhere. */
  look = (): void => {
    const { list } = this.page;
    if (!list) return;
    const places = new Map<string, Place>();
    for (const question of this.#asked.open) {
      const place = list.placeOf(itemKeyOf(question));
      if (place) places.set(question.key, place);
    }
    const focused = document.activeElement?.closest<HTMLElement>("[data-question]")?.dataset.question ?? "";
    const isSame = focused === this.#focused && places.size === this.#places.size;
    if (isSame && [...places].every(([key, place]) => this.#places.get(key) === place)) return;
    this.#places = places;
    this.#focused = focused;
    this.page.redraw();
  };

  /** Return what says that a question waits out of view, and leads there. */
  pill() {
    const beyond = beyondView(this.#asked.open, this.#places);
    if (!beyond) return nothing;
    const { count, place } = beyond;
    const words = t(place === "below" ? "questionBelow" : "questionAbove");
    return html`<div class="beyond">
      <button class="b small" @click=${() => this.go()}>
        ${icon(place === "below" ? "next" : "up")}${count > 1 ? t("countQuestionsWait", count) : words} <kbd>.</kbd>
      </button>
    </div>`;
  }

  /** Go to the next question that is out of view; return whether there is one. */
  go(): boolean {
    const beyond = beyondView(this.#asked.open, this.#places);
    if (beyond) void this.#lead(beyond.next);
    return beyond !== undefined;
  }

  /** Let the questions that ended elsewhere go; return whether there were any. */
  close(): boolean {
    const hadEnded = this.#asked.close();
    if (hadEnded) this.page.redraw();
    return hadEnded;
  }

  /** After an answer that was given here, go on to the next question, whose title gets the focus; nothing is pressed. */
  leadOn(): void {
    const answered = this.#answered;
    if (!answered || this.#asked.open.some(({ key }) => key === answered.key)) return;
    this.#answered = undefined;
    const next = nextAfter(this.#asked.open, answered.before, answered.key);
    if (next) void this.#lead(next);
    else if (document.activeElement === document.body) this.page.list?.focus({ preventScroll: true });
  }

  async #lead(question: ShownQuestion): Promise<void> {
    const { list } = this.page;
    const key = itemKeyOf(question);
    if (list && list.placeOf(key) !== "in") await list.show(key);
    this.#elementOf(question.key)?.querySelector<HTMLElement>("h2, a")?.focus({ preventScroll: true });
    this.look();
  }

  #card(question: ShownQuestion, item: CallItem) {
    const { page } = this;
    const fold = page.stream.foldNamed(question.taskId);
    const task = fold?.row ?? page.store.rows.get(question.taskId);
    const [first] = question.calls.filter((call) => fold?.questions.some((one) => one === call));
    const address = PAGE + questionPath(`${question.taskId}/${(first ?? item.call).tool_call_id}`);
    const waited = age(item.since, page.now);
    const waits = waited === t("now") ? t("waitsSince") : t("waitsFor", waited);
    if (this.#narrow.matches && !question.hasEnded && task)
      return html`<div data-question=${question.key}>${askedLink({ ...question, task }, address, waits)}</div>`;
    const isKeyed = keyedOf(this.#asked.open, this.#focused, this.#places) === question.key;
    const beside = question.hasEnded
      ? nothing
      : html`<span class="pill acc">${stateMark("input-required")}${waits}</span>
          <span class="right xs t3"
            >${t("alsoIn")}
            <a href=${address}>${t("inbox")}</a
            >${isKeyed ? nothing : html`<span class="vh">${COMMA}${t("keysElsewhere")}</span>`}</span
          >`;
    return html`<div
      class="inline ${question.hasEnded ? "over" : isKeyed ? "keyed" : ""}"
      data-question=${question.key}
    >
      ${askedCard(
        {
          calls: question.calls,
          open: this.openIds,
          answers: fold?.answers ?? new Map(),
          task,
          taskId: question.taskId,
          agent: page.agent,
          hasEnded: question.hasEnded,
          isOff: page.stream.stream.is !== "live",
          more: "",
          takesKeys: isKeyed,
          isAway: !question.hasEnded && this.#places.get(question.key) !== "in",
          beside,
          answering: () => this.#answering(question),
          failed: () => this.#failed(question),
          sent: () => page.store.refresh(),
        },
        page,
      )}
      ${
        question.hasEnded
          ? html`<div class="actions">
              <button class="b small" @click=${() => this.close()}>${t("close")} <kbd>esc</kbd></button>
            </div>`
          : nothing
      }
    </div>`;
  }

  #answering(question: ShownQuestion): void {
    this.#asked.answering(question.key);
    this.#answered = { key: question.key, before: this.#asked.open };
  }

  #failed(question: ShownQuestion): void {
    this.#answered = undefined;
    this.#asked.failed(question);
    this.page.redraw();
  }

  /** Return whether the user was at a question: something was typed or chosen in it, or it has the focus. */
  #isHeld(key: string): boolean {
    const element = this.#elementOf(key);
    if (!element) return false;
    const card = element.querySelector<QuestionCard | FormCard>("isthmus-question, isthmus-form");
    return element.contains(document.activeElement) || (card?.hasText ?? false);
  }

  #elementOf(key: string): HTMLElement | undefined {
    const all = this.page.querySelectorAll<HTMLElement>("[data-question]");
    return [...all].find((element) => element.dataset.question === key);
  }

  #changed = (): void => this.page.redraw();
}
