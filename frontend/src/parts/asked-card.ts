// The card of a question: fields where its structure is known, otherwise what the call would do and its options.

import { html } from "lit";
import type { Answered } from "../client.ts";
import { formOf } from "../forms/form.ts";
import type { TaskRow, ToolCall } from "../protocol.ts";
import { modelName } from "../forms/form-facts.ts";
import type { PageElement } from "./base.ts";
import { askedLink, isOnPhone } from "./phone-question.ts";

export interface Asked {
  calls: readonly ToolCall[];
  /** Ids of the calls that wait. */
  open: ReadonlySet<string>;
  answers: ReadonlyMap<string, Answered>;
  task: TaskRow | undefined;
  taskId: string;
  agent: string;
  hasEnded: boolean;
  isOff: boolean;
  more: string;
  answering: (event: CustomEvent<string>) => void;
  failed: (event: CustomEvent<string>) => void;
  sent: () => void;
}

let loading: Promise<unknown> | undefined;
let cannotLoad = false;

/** Load what draws forms; if it does not come, `host` shows the documents. */
function load(host: PageElement): void {
  loading ??= import("./form-card.ts").catch(() => {
    cannotLoad = true;
    host.requestUpdate();
  });
}

/** Return the card of a question, drawn into `host`. */
export function askedCard(asked: Asked, host: PageElement) {
  const [call] = asked.calls;
  const { task, taskId, agent, hasEnded, isOff } = asked;
  // In a session; the inbox is where a phone answers.
  if (asked.more && !hasEnded && isOnPhone(host)) return askedLink(asked);
  if (!cannotLoad && formOf(asked.calls)) {
    load(host);
    return html`<isthmus-form
      class=${asked.more}
      .calls=${asked.calls}
      .open=${hasEnded ? new Set() : asked.open}
      .answered=${asked.answers}
      .task=${task}
      .taskId=${taskId}
      .agent=${agent}
      .model=${task ? modelName(task) : ""}
      ?isOff=${isOff}
      ?takesKeys=${true}
      @answering=${asked.answering}
      @failed=${asked.failed}
      @sent=${asked.sent}
    ></isthmus-form>`;
  }
  return html`<isthmus-question
    class=${asked.more}
    .call=${call}
    .taskId=${taskId}
    .workspace=${task?.workspace ?? ""}
    .agent=${agent}
    ?hasEnded=${hasEnded}
    .answered=${call && asked.answers.get(call.tool_call_id)}
    ?isOff=${isOff}
    ?takesKeys=${true}
    @answering=${asked.answering}
    @failed=${asked.failed}
    @sent=${asked.sent}
  ></isthmus-question>`;
}
