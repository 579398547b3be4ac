// The rows of a conversation: prompts, texts, thoughts, tool calls and ends, one template each.

import { html, nothing } from "lit";
import { icon, stateMark, toolIcon } from "../icons.ts";
import { markdownOf } from "../markdown.ts";
import type { TaskState } from "../protocol.ts";
import { diffOf, factsOf } from "../question.ts";
import { outputText, visible, visibleLine } from "../safe.ts";
import { isCommand } from "../sending.ts";
import { subagentOf } from "../subagents.ts";
import type { CallItem, Item, PromptItem } from "../task-fold.ts";
import { t } from "../words.ts";
import { shownCounts } from "./counts.ts";
import { stateWord } from "./task-aside.ts";

const LONGEST_PROMPT = 20_000;

/** A state of the page that rows are drawn with, and what their buttons do. */
export interface Rows {
  now: number;
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
}

export function rowOfItem(item: Item, rows: Rows) {
  switch (item.is) {
    case "prompt":
      return html`<div class="said" dir="auto" tabindex="-1">${beginning(item.text)}</div>
        ${acts(item, rows)}`;
    case "text":
      return html`<div class="prose" dir="auto">
        ${markdownOf(item, item.prefix ? `${item.prefix}\n${item.text}` : item.text)}
      </div>`;
    case "thought":
      return html`<details
        class="thought"
        ?open=${rows.open.has(item.key)}
        @toggle=${(event: Event) => rows.set(item.key, (event.target as HTMLDetailsElement).open)}
      >
        <summary>
          ${t("thought")} <span class="t3 cut" dir="auto">${visibleLine(item.subject.slice(0, 500), 120)}</span>
        </summary>
        ${rows.open.has(item.key) ? html`<div class="prose t2" dir="auto">${markdownOf(item, item.description)}</div>` : nothing}
      </details>`;
    case "end":
      return html`<p class="problem">
        ${stateWord(item.state)}${item.error ? html`: ${beginning(item.error)}` : nothing}
      </p>`;
    case "call":
      return callRow(item, rows);
  }
}

/** Return what can be done from a prompt; a slash command has none of it. */
function acts(item: PromptItem, rows: Rows) {
  const canBranch = rows.canBranch && !isCommand(item.text);
  if (!item.checkpoint && !canBranch) return nothing;
  return html`<div class="acts">
    ${item.checkpoint ? html`<button class="b small quiet" ?disabled=${!rows.rests} title=${t(rows.rests ? "rewindPrompt" : "notWhileWorking")} @click=${() => rows.rewind(item)}>${icon("undo")}${t("rewind")}</button>` : nothing}
    ${canBranch ? html`<button class="b small quiet" ?disabled=${!rows.rests} title=${t(rows.rests ? "branchHere" : "notWhileWorking")} @click=${() => rows.branch(item)}>${icon("branch")}${t("branch")}</button>` : nothing}
  </div>`;
}

function beginning(text: string) {
  const rest = text.length - LONGEST_PROMPT;
  return rest > 0
    ? html`${visible(text.slice(0, LONGEST_PROMPT))}… <span class="t3">${t("notShown", rest.toLocaleString())}</span>`
    : visible(text);
}

function callRow(item: CallItem, rows: Rows) {
  const call = item.call;
  const facts = factsOf(call, rows.workspace);
  const diff = diffOf(call);
  const isOpen = rows.open.has(item.key);
  const subagent = subagentOf(call);
  const isRunning = call.status === "EXECUTING";
  const live = isRunning ? call.live_content : undefined;
  const text = isRunning ? "" : (call.error?.message ?? call.output?.text ?? "");
  const mark: TaskState =
    call.status === "SUCCEEDED"
      ? "completed"
      : call.status === "FAILED"
        ? "failed"
        : call.status === "CANCELLED"
          ? "canceled"
          : rows.asking.has(call.tool_call_id)
            ? "input-required"
            : "working";
  const canOpen = !isRunning && (diff !== undefined || text !== "" || item.fetched > 0);
  return html`<div class="calls">
    <div class="call">
      ${stateMark(mark)}${toolIcon(call.tool_name)}
      <span class="cut grow" dir="auto"
        >${facts.verb} ${facts.verb ? html`<code>${facts.object}</code>` : facts.object}
        ${item.counts ? shownCounts(item.counts) : nothing}</span
      >
      ${subagent ? html`<span class="pill" dir="auto">${t("subagentBadge", subagent)}</span>` : nothing}
      <span class="right row t3 xs"
        >${item.answeredBy ? html`<span class="wide-only" dir="auto">${t("answered", visibleLine(item.answeredBy, 60))}</span>` : nothing}
        ${isRunning ? html`<span class="num">${Math.max(0, Math.round((rows.now - item.since) / 1000))} s</span>` : nothing}
        ${canOpen ? html`<button class="b small quiet" aria-expanded=${isOpen} @click=${() => rows.toggle(item)}>${diff ? t("showDiff") : t("showOutput")}</button>` : nothing}
        ${item.checkpoint ? html`<button class="b small quiet icon" ?disabled=${!rows.rests} aria-label="${t("rewind")}: ${t("rewindEdit")}" title=${t(rows.rests ? "rewindEdit" : "notWhileWorking")} @click=${() => rows.rewind(item)}>${icon("undo")}</button>` : nothing}
      </span>
    </div>
    ${live ? output(live, 4_000) : nothing}
    ${
      isOpen && item.fetched
        ? html`<p class="out" role="status">${t("fetching")}</p>`
        : isOpen && diff
          ? html`<isthmus-diff
              .oldText=${diff.old_content}
              .newText=${diff.new_content}
              .path=${facts.object}
            ></isthmus-diff>`
          : isOpen && text
            ? output(text, 20_000)
            : nothing
    }
  </div>`;
}

function output(content: string, limit: number) {
  const { text, hidden } = outputText(content, limit);
  return html`<pre class="out" tabindex="0">
${hidden ? html`<span class="t3">${`${t("linesAbove", hidden.toLocaleString())}\n`}</span>` : nothing}${text}</pre>`;
}
