// The rows of a conversation: prompts, texts, thoughts, tool calls and ends, one template each.

import { html, nothing } from "lit";
import { waitUntil } from "../../task/failure.ts";
import { durationWords } from "../../task/call-facts.ts";
import { icon, stateMark } from "../../frame/icons.ts";
import { markdownOf } from "../../text/markdown.ts";
import { visible, visibleLine } from "../../text/safe.ts";
import { isCommand } from "../../conversation/sending.ts";
import type { CallItem, EndItem, Item, PromptItem, ThoughtItem } from "../../task/task-fold.ts";
import { clock, t } from "../../words.ts";
import { callRow } from "./call-row.ts";

const LONGEST_PROMPT = 20_000;

/** A state of the page that rows are drawn with, and what their buttons do. */
export interface Rows {
  now: number;
  /** Whether the connection is lost, and since when, in ms: what works was seen then for the last time. 0 otherwise. */
  lostAt?: number;
  workspace: string;
  /** The ids of the calls that wait for the user. */
  asking: ReadonlySet<string>;
  /** The keys of the items that are open. */
  open: ReadonlySet<string>;
  set(key: string, isOpen: boolean): void;
  toggle(item: CallItem): void;
  /** Whether the task rests, so that its session can be rewound. */
  rests: boolean;
  canBranch: boolean;
  rewind(item: PromptItem | CallItem): void;
  branch(item: PromptItem): void;
  /** The last item of the session. */
  last?: Item | undefined;
  /** Sends the message of a turn that did not end well again. */
  again?(item: EndItem): void;
  /** Returns the id of the task of the subagent that a call has begun, if it is known. */
  childOf?(item: CallItem): string | undefined;
  /** Stops the task of a subagent alone. */
  stop?(taskId: string): void;
}

export function rowOfItem(item: Item, rows: Rows) {
  switch (item.is) {
    case "prompt":
      return html`<div class="said" dir="auto" tabindex="-1">${beginning(item.text)}</div>
        ${item.pictures ? html`<isthmus-pictures class="of-message" .pictures=${item.pictures} .label=${t("yourMessage")}></isthmus-pictures>` : nothing}
        ${acts(item, rows)}`;
    case "text":
      return html`<div class="prose" dir="auto">
        ${markdownOf(item, item.prefix ? `${item.prefix}\n${item.text}` : item.text)}
      </div>`;
    case "thought":
      return thought(item, rows);
    case "end":
      return ending(item, rows);
    case "call":
      return callRow(item, rows);
  }
}

function thought(item: ThoughtItem, rows: Rows) {
  const isOpen = rows.open.has(item.key);
  const time = durationWords(item.time);
  return html`<details
    class="thought"
    ?open=${isOpen}
    @toggle=${(event: Event) => rows.set(item.key, (event.target as HTMLDetailsElement).open)}
  >
    <summary>
      ${icon("fold")}<span class="took">${time ? t("thoughtFor", time) : t("thought")}</span>
      <span class="t3 cut grow" dir="auto">${visibleLine(item.subject.slice(0, 500), 120)}</span>
      ${item.at ? html`<time class="xs t3 num">${clock(item.at / 1000)}</time>` : nothing}
    </summary>
    ${isOpen ? html`<div class="prose t2" dir="auto">${markdownOf(item, item.description)}</div>` : nothing}
  </details>`;
}

/** Return how a turn ended that was not completed, why, and what can be done. */
function ending(item: EndItem, rows: Rows) {
  const time = item.at ? clock(item.at / 1000) : "";
  const until = waitUntil(item.error, item.at, rows.now);
  const isStopped = item.state === "canceled";
  const word = isStopped ? "turnStopped" : item.state === "rejected" ? "turnRejected" : "turnFailed";
  return html`<div class="turn-end ${isStopped ? "" : "bad-end"}">
    ${stateMark(item.state)}
    <div class="grow">
      <p>${t(word)}${time ? html` <span class="t3 num">${time}</span>` : nothing}</p>
      ${item.error && !isStopped ? html`<p class="why" dir="auto">${beginning(item.error)}</p>` : nothing}
      ${until ? html`<p class="t2">${t("waitUntil", clock(until / 1000))}</p>` : nothing}
    </div>
    ${rows.again && item.again && rows.last === item ? html`<button class="b small" ?disabled=${!rows.rests} @click=${() => rows.again?.(item)}>${icon("again")}${t("tryAgain")}</button>` : nothing}
  </div>`;
}

/** Return what can be done from a prompt; a slash command has none of it. */
function acts(item: PromptItem, rows: Rows) {
  const canBranch = rows.canBranch && !isCommand(item.text);
  if (!item.checkpoint && !canBranch && !item.at) return nothing;
  return html`<div class="acts">
    ${item.at ? html`<time class="xs t3 num">${clock(item.at / 1000)}</time>` : nothing}
    ${item.checkpoint ? html`<button class="b small quiet" ?disabled=${!rows.rests} title=${t(rows.rests ? "rewindPrompt" : "notWhileWorking")} @click=${() => rows.rewind(item)}>${icon("undo")}${t("rewind")}</button>` : nothing}
    ${canBranch ? html`<button class="b small quiet" ?disabled=${!rows.rests} title=${t(rows.rests ? "branchHere" : "notWhileWorking")} @click=${() => rows.branch(item)}>${icon("branch")}${t("branch")}</button>` : nothing}
  </div>`;
}

function beginning(text: string) {
  const rest = text.length - LONGEST_PROMPT;
  return rest > 0
    ? html`${visible(text.slice(0, LONGEST_PROMPT))}… <span class="t3">${t("notShown", rest)}</span>`
    : visible(text);
}
