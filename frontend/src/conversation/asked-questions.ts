// The questions of a session at their calls: those that wait, and those that ended elsewhere while the user was at them. Pure.

import { merged } from "../forms/form.ts";
import type { ToolCall } from "../server/protocol.ts";

/** Calls of one turn that are asked together, and wait. */
export interface OpenQuestion {
  taskId: string;
  calls: readonly ToolCall[];
}

/** A question that stands at its first call. */
export interface ShownQuestion extends OpenQuestion {
  /** Name of the question: its turn and its first call, as in the address of the inbox. */
  key: string;
  /** Whether it ended elsewhere, and stays to say by whom. */
  hasEnded: boolean;
}

/** Place of a question in the list: in view, or beyond one of its ends. */
export type Place = "above" | "in" | "below";

export const keyOf = ({ taskId, calls }: OpenQuestion): string => `${taskId}/${calls[0]?.tool_call_id ?? ""}`;

export class AskedQuestions {
  #shown: readonly ShownQuestion[] = [];
  /** Keys of the questions that are being answered here. */
  #own = new Set<string>();

  /** All that stand in the conversation, in the order in which they were asked. */
  get shown(): readonly ShownQuestion[] {
    return this.#shown;
  }

  get open(): readonly ShownQuestion[] {
    return this.#shown.filter((question) => !question.hasEnded);
  }

  /** Take the open questions; `isHeld` says whether the user was at one that is open no more. */
  take(open: readonly OpenQuestion[], isHeld: (key: string) => boolean): void {
    const left = [...open];
    const known = this.#shown.flatMap((shown) => {
      const at = left.findIndex((one) => isSame(one, shown));
      const [found] = at >= 0 ? left.splice(at, 1) : [];
      if (found) return [{ ...shown, calls: merged(shown.calls, found.calls), hasEnded: false }];
      if (shown.hasEnded || (!this.#own.has(shown.key) && isHeld(shown.key))) return [{ ...shown, hasEnded: true }];
      return [];
    });
    this.#shown = [...known, ...left.map((one) => ({ ...one, key: keyOf(one), hasEnded: false }))];
  }

  /** A question is being answered here. */
  answering(key: string): void {
    this.#own.add(key);
  }

  /** An answer did not count; if its question is open no more, somebody else was first, and it stays to say so. */
  failed(question: ShownQuestion): void {
    this.#own.delete(question.key);
    if (!this.#shown.some(({ key }) => key === question.key))
      this.#shown = [...this.#shown, { ...question, hasEnded: true }];
  }

  /** Let the questions that ended go; return whether there were any. */
  close(): boolean {
    const { open } = this;
    const hadEnded = open.length < this.#shown.length;
    this.#shown = open;
    return hadEnded;
  }

  /** Begin with another session. */
  reset(): void {
    this.#shown = [];
    this.#own.clear();
  }
}

/** Return the key of the question that takes keys: the one with the focus, otherwise the first in view; or none. */
export function keyedOf(
  open: readonly ShownQuestion[],
  focused: string,
  places: ReadonlyMap<string, Place>,
): string | undefined {
  const found = open.find(({ key }) => key === focused) ?? open.find(({ key }) => places.get(key) === "in");
  return found?.key;
}

/** Return how many open questions are out of view, and the one to go to: the next one below, otherwise the last above. */
export function beyondView(
  open: readonly ShownQuestion[],
  places: ReadonlyMap<string, Place>,
): { count: number; next: ShownQuestion; place: Place } | undefined {
  const below = open.filter(({ key }) => places.get(key) === "below");
  const above = open.filter(({ key }) => places.get(key) === "above");
  const next = below[0] ?? above.at(-1);
  return next && { count: below.length + above.length, next, place: below.length ? "below" : "above" };
}

/** Return the question that the user is led to after one was answered here: the next one, otherwise the first. */
export function nextAfter(
  open: readonly ShownQuestion[],
  before: readonly ShownQuestion[],
  answered: string,
): ShownQuestion | undefined {
  const at = before.findIndex(({ key }) => key === answered);
  const after = new Set(before.slice(at + 1).map(({ key }) => key));
  return open.find(({ key }) => after.has(key)) ?? open[0];
}

const isSame = (one: OpenQuestion, other: OpenQuestion): boolean =>
  one.taskId === other.taskId &&
  one.calls.some((call) => other.calls.some((each) => each.tool_call_id === call.tool_call_id));
