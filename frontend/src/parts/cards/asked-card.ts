// The card of a question: fields where its structure is known, otherwise what the call would do and its options.
// Where there is little width, a link to the page of the question instead.

import { html, nothing } from "lit";
import type { Answered } from "../../server/task-stream.ts";
import { formOf } from "../../forms/form.ts";
import type { TaskRow, ToolCall } from "../../server/protocol.ts";
import { modelName } from "../../forms/form-facts.ts";
import { icon, stateMark } from "../../frame/icons.ts";
import type { Question } from "../../server/store.ts";
import { t } from "../../words.ts";
import { aboutLines } from "./asker.ts";
import type { PageElement } from "../base.ts";

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
  /** Whether it is the one of several that keys mean. */
  takesKeys?: boolean;
  /** Whether it is out of view. */
  isAway?: boolean;
  /** A template that is drawn beside its title. */
  beside?: unknown;
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
  const { task, taskId, agent, hasEnded, isOff, takesKeys = true, isAway = false } = asked;
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
      ?takesKeys=${takesKeys}
      ?isAway=${isAway}
      .beside=${asked.beside}
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
    ?takesKeys=${takesKeys}
    ?isAway=${isAway}
    .beside=${asked.beside}
    @answering=${asked.answering}
    @failed=${asked.failed}
    @sent=${asked.sent}
  ></isthmus-question>`;
}

/** Return the link to the page of a question; `waits` says for how long it has waited. */
export function askedLink(asked: Pick<Question, "calls" | "task">, address: string, waits: string) {
  const [call] = asked.calls;
  if (!call) return nothing;
  const { what, peek } = aboutLines({ ...asked, call });
  return html`<a class="asked-link" href=${address}>
    <span class="what cut" dir="auto">${what}</span>
    <span class="peek cut" dir="auto">${peek}</span>
    <span class="pill acc">${stateMark("input-required")}${waits}</span>
    <span class="go">${t("openIt")}${icon("fold")}</span>
  </a>`;
}
