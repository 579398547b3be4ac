// A question of a task that was answered elsewhere while the user typed an answer: it stays until the user goes on.

import type { ToolCall } from "./protocol.ts";

/** Keeps the question that is in view, if it ends by an answer from elsewhere and something was typed or pressed for it. */
export class LostQuestion {
  call: ToolCall | undefined;
  #shown: ToolCall | undefined;
  /** The question that is being answered here. */
  #own: ToolCall | undefined;

  /** Take the open questions; `hasText` says whether something was typed for the one in view. */
  take(open: readonly ToolCall[], hasText: () => boolean): void {
    const shown = this.#shown;
    if (shown && !open.some((call) => call.tool_call_id === shown.tool_call_id)) {
      if (!this.call && shown !== this.#own && hasText()) this.call = shown;
      this.#shown = undefined;
    }
    if (!this.call) this.#shown = open[0];
  }

  /** The question in view is being answered here. */
  answering(): void {
    this.#own = this.#shown;
  }

  /** The answer did not count; if the question has ended, somebody else was first. */
  failed(open: readonly ToolCall[]): void {
    const own = this.#own;
    this.#own = undefined;
    if (own && !open.some((call) => call.tool_call_id === own.tool_call_id)) this.call = own;
  }

  close(): void {
    this.call = this.#own = this.#shown = undefined;
  }
}
