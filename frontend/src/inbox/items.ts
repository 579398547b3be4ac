// What waits for the user, as the inbox lists it: nothing moves under the reader's eyes. Pure.

import type { Answered } from "../server/task-stream.ts";
import { merged } from "../forms/form.ts";
import type { Waiting } from "../server/reviews.ts";
import type { Question } from "../server/store.ts";

/** Something that waits or waited: a question of a task, or a review or question of a companion. */
export interface Item {
  key: string;
  question?: Question;
  review?: Waiting;
  isAnswered: boolean;
  /** Ids of the calls of the question that wait. */
  open: ReadonlySet<string>;
  /** Who answered the calls of the question that wait no more, as far as that is known. */
  answers: ReadonlyMap<string, Answered>;
  /** When it was seen that nothing of it waits any more, in milliseconds; 0 while something does. */
  endedAt: number;
  /** Whether it was answered on this page, and whether that is still on its way. */
  isOwn?: boolean;
  isSending?: boolean;
}

/** A call whose question has ended, so that it may be asked who answered it. */
export interface EndedCall {
  item: Item;
  question: Question;
  callId: string;
}

/** Time from the first list in which the other one takes its places in the order of time, in milliseconds. */
export const OPENING_MS = 1000;

const NONE: ReadonlySet<string> = new Set();

const keyOf = (question: Question): string => `${question.task.id}/${question.call.tool_call_id}`;
const timeOf = ({ question, review }: Item): number => review?.at ?? question?.task.changedAt ?? 0;
const newestFirst = (items: Item[]): Item[] => items.sort((one, other) => timeOf(other) - timeOf(one));
const idsOf = (question: Question): Set<string> => new Set(question.calls.map((call) => call.tool_call_id));

/**
 * The list of the inbox. What is answered stays in its place, and what is new gathers until it is to be shown, or until
 * nothing that is shown waits any more.
 */
export class InboxItems {
  shown: Item[] = [];
  /** What came since the list was shown, newest first. */
  fresh: Item[] = [];
  #hasQuestions = false;
  #hasReviews = false;
  /** When the first list was loaded, in milliseconds. */
  #openedAt = Infinity;

  get open(): Item[] {
    return this.shown.filter((item) => !item.isAnswered);
  }

  get answered(): Item[] {
    return this.shown.filter((item) => item.isAnswered);
  }

  find(key: string): Item | undefined {
    return this.shown.find((item) => item.key === key);
  }

  /**
   * Take what waits now; `loaded` says whose list was loaded. Return the items of which nothing waits any
   * more, and the calls whose questions have ended.
   */
  take(
    questions: readonly Question[],
    reviews: readonly Waiting[],
    loaded: { questions: boolean; reviews: boolean },
    now: number,
  ): { gone: Item[]; ended: EndedCall[] } {
    const waiting = new Map<string, Item>();
    for (const item of questions.map((question) => this.#itemOf(question))) waiting.set(item.key, item);
    const rest = { isAnswered: false, open: NONE, answers: new Map<string, Answered>(), endedAt: 0 };
    for (const review of reviews) waiting.set(review.key, { ...rest, key: review.key, review });
    const gone: Item[] = [];
    const ended: EndedCall[] = [];
    for (const item of this.shown) this.#update(item, waiting.get(item.key), now, gone, ended);
    this.fresh = this.fresh.flatMap((item) => {
      const found = waiting.get(item.key);
      return found ? [Object.assign(item, { ...found, answers: item.answers })] : [];
    });
    const known = new Set([...this.shown, ...this.fresh].map((item) => item.key));
    const added = newestFirst([...waiting.values()].filter((item) => !known.has(item.key)));
    const isFirst = (item: Item): boolean => (item.review ? !this.#hasReviews : !this.#hasQuestions);
    const begins = [...this.shown, ...added.filter(isFirst)];
    // Whose list comes first is chance. Once the user has had time to read, nothing moves.
    this.shown = now - this.#openedAt <= OPENING_MS ? newestFirst(begins) : begins;
    this.fresh = [...added.filter((item) => !isFirst(item)), ...this.fresh];
    if (loaded.questions || loaded.reviews) this.#openedAt = Math.min(this.#openedAt, now);
    this.#hasQuestions ||= loaded.questions;
    this.#hasReviews ||= loaded.reviews;
    if (!this.open.length) this.showFresh();
    return { gone, ended };
  }

  /** Show what came since, above the rest. */
  showFresh(): void {
    if (!this.fresh.length) return;
    this.shown = [...this.fresh, ...this.shown];
    this.fresh = [];
  }

  #update(item: Item, found: Item | undefined, now: number, gone: Item[], ended: EndedCall[]): void {
    if (!found && !item.isAnswered) gone.push(item);
    const { question } = item;
    if (question && (found || !item.isSending))
      for (const callId of item.open) if (!found?.open.has(callId)) ended.push({ item, question, callId });
    // While its answers are on their way a part of them may have arrived: it stays until all have.
    if (found) Object.assign(item, { ...found, answers: item.answers });
    else if (!item.isSending) Object.assign(item, { isAnswered: true, open: NONE, endedAt: item.endedAt || now });
  }

  /** Return the item of a question: what of it was answered while it was shown stays in it. */
  #itemOf(question: Question): Item {
    const open = idsOf(question);
    const rest = { open, answers: new Map<string, Answered>(), isAnswered: false, endedAt: 0 };
    const known = [...this.shown, ...this.fresh].find(
      (item) =>
        item.question?.task.id === question.task.id && item.question.calls.some((call) => open.has(call.tool_call_id)),
    );
    if (!known?.question) return { ...rest, key: keyOf(question), question };
    const calls = merged(known.question.calls, question.calls);
    return { ...rest, key: known.key, question: { ...question, call: calls[0] ?? question.call, calls } };
  }
}
