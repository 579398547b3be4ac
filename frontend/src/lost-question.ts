// A question of a task that was answered elsewhere while the user typed an answer: it stays until the user goes on.

import { merged } from "./forms/form.ts";
import type { ToolCall } from "./protocol.ts";

/** The calls of one question: one, or several that are asked together. */
type Asked = readonly ToolCall[];

const isSame = (one: Asked | undefined, other: Asked | undefined): boolean =>
  one !== undefined && one.some((call) => other?.some((each) => each.tool_call_id === call.tool_call_id));

/** Keeps the question that is in view, if it ends by an answer from elsewhere and something was typed or pressed for it. */
export class LostQuestion {
  calls: Asked | undefined;
  /** The question in view, with what of it was answered meanwhile. */
  shown: Asked | undefined;
  /** The question that is being answered here. */
  #own: Asked | undefined;

  /** Take the open questions; `hasText` says whether something was typed for the one in view. */
  take(open: readonly Asked[], hasText: () => boolean): void {
    const { shown } = this;
    const found = open.find((calls) => isSame(calls, shown));
    if (shown && !found) {
      if (!this.calls && !isSame(shown, this.#own) && hasText()) this.calls = shown;
      this.shown = undefined;
    }
    if (shown && found) this.shown = merged(shown, found);
    else if (!this.calls) this.shown = open[0];
  }

  /** The question in view is being answered here. */
  answering(): void {
    this.#own = this.shown;
  }

  /** The answer did not count; if the question has ended, somebody else was first. */
  failed(open: readonly Asked[]): void {
    const own = this.#own;
    this.#own = undefined;
    if (own && !open.some((calls) => isSame(calls, own))) this.calls = own;
  }

  close(): void {
    this.calls = this.#own = this.shown = undefined;
  }
}
