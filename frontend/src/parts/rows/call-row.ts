// The row of a tool call: its state, what it does, how it ended, who allowed it, and what it has written.

import { type TemplateResult, html, nothing } from "lit";
import { clockWords, durationWords, markOf, resultWords, rowFactsOf, withoutExitCode } from "../../task/call-facts.ts";
import { diffOf } from "../../diff/diffs.ts";
import { answerWords } from "../../task/given-answer.ts";
import { icon, stateMark, toolIcon } from "../../frame/icons.ts";
import { PAGE } from "../../place.ts";
import type { FileDiff, ToolCall } from "../../server/protocol.ts";
import { shownPath } from "../../questions/question.ts";
import { answererName } from "../../server/session.ts";
import { INVOKE_AGENT, subagentOf } from "../../task/subagents.ts";
import type { CallItem } from "../../task/task-fold.ts";
import { exactClock, t } from "../../words.ts";
import "./call-output.ts";
import { shownCounts } from "../files/counts.ts";
import type { Rows } from "./task-rows.ts";

/** Longer commands may have been shortened: half of one is never copied. */
const LONGEST_COMMAND = 2_000;
const QUESTIONS: ReadonlySet<string> = new Set(["ask_user", "elicitation", "sampling"]);

/** What is known of a call that several parts of its row need. */
interface Shown {
  item: CallItem;
  rows: Rows;
  diff: FileDiff | undefined;
  isOpen: boolean;
  isRunning: boolean;
  hasFailed: boolean;
  /** What it has written. */
  text: string;
}

export function callRow(item: CallItem, rows: Rows): TemplateResult {
  const { call } = item;
  const mark = markOf(call.status, item.result, rows.asking.has(call.tool_call_id));
  const isRunning = call.status === "EXECUTING";
  const shown: Shown = {
    item,
    rows,
    diff: diffOf(call),
    isOpen: rows.open.has(item.key),
    isRunning,
    hasFailed: mark === "failed",
    text: isRunning ? (call.live_content ?? "") : (call.error?.message ?? call.output?.text ?? ""),
  };
  const { verb, object, rest } = rowFactsOf(call, rows.workspace);
  const subagent = subagentOf(call);
  return html`<div class="calls ${item.isFirst ? "first" : ""} ${item.isLast ? "last" : ""}">
    <div class="call">
      ${stateMark(mark, rows.lostAt !== undefined && rows.lostAt > 0)}${toolIcon(call.tool_name)}
      <span class="cut grow" dir="auto" title=${[verb, object, rest].filter(Boolean).join(" ")}
        >${verb} ${object ? html`<code>${object}</code>` : nothing} ${rest}
        ${item.counts ? shownCounts(item.counts) : nothing}</span
      >
      ${item.pictures ? html`<isthmus-pictures .pictures=${item.pictures} .label=${[verb, object, rest].filter(Boolean).join(" ")}></isthmus-pictures>` : nothing}
      ${subagent ? html`<span class="pill" dir="auto">${t("subagentBadge", subagent)}</span>` : nothing}
      ${item.answer ? html`<span class="by" dir="auto">${answerWords(item.answer, QUESTIONS.has(call.tool_name), answererName())}</span>` : nothing}
      <span class="ends">${ending(shown)}${acts(shown)}</span>
    </div>
    ${below(shown)}
  </div>`;
}

/** Return the result, and how long it took. */
function ending({ item, rows, isRunning, isOpen, hasFailed, text, diff }: Shown) {
  const { result } = item;
  if (isRunning && rows.lostAt)
    return html`<span class="num">${t("lastSeenTime", exactClock(rows.lostAt / 1000))}</span>`;
  if (isRunning) return html`<span class="num">${clockWords(rows.now - item.since)}</span>`;
  const time = item.until && !diff ? durationWords(item.until - item.since) : "";
  const words = result ? resultWords(result) : "";
  const opens = !hasFailed && !diff && (text !== "" || item.fetched > 0);
  return html`${
    opens
      ? html`<button class="link num" aria-expanded=${isOpen} @click=${() => rows.toggle(item)}>
          ${words || t(item.call.status === "CANCELLED" ? "rowWhy" : "showOutput")}
        </button>`
      : words
        ? html`<span class="num ${result?.is === "exit" ? "bad" : ""}">${words}</span>`
        : nothing
  }
  ${time ? html`<span class="num">${time}</span>` : nothing}`;
}

/** Return what can be done with the call. */
function acts({ item, rows, diff, isOpen, isRunning, hasFailed }: Shown) {
  const { call } = item;
  const command = commandOf(call);
  const child = call.tool_name === INVOKE_AGENT ? rows.childOf?.(item) : undefined;
  const isForgotten = hasFailed && item.fetched > 0;
  return html`${diff || isForgotten ? html`<button class="link" aria-expanded=${isOpen} ?disabled=${isRunning} @click=${() => rows.toggle(item)}>${diff ? t("showDiff") : t("showOutput")}</button>` : nothing}
  ${child ? html`<a class="link" href="${PAGE}task/${child}">${t("openIt")}</a>` : nothing}
  ${child && isRunning ? html`<button class="b small quiet" @click=${() => rows.stop?.(child)}>${t("stopThis")}</button>` : nothing}
  ${command && command.length < LONGEST_COMMAND ? html`<isthmus-copy .text=${() => command} .label=${t("copyCommand")}></isthmus-copy>` : nothing}
  ${diff && isOpen && !item.fetched ? html`<isthmus-copy .text=${() => diffText(diff, rows.workspace)} .label=${t("copyDiff")}></isthmus-copy>` : nothing}
  ${item.checkpoint ? html`<button class="b small quiet icon" ?disabled=${!rows.rests} aria-label="${t("rewind")}: ${t("rewindEdit")}" title=${t(rows.rests ? "rewindEdit" : "notWhileWorking")} @click=${() => rows.rewind(item)}>${icon("undo")}</button>` : nothing}`;
}

function commandOf(call: ToolCall): string {
  const given = call.input_parameters?.command;
  if (call.tool_name !== "run_shell_command" && !call.confirmation_request?.execute_details) return "";
  return typeof given === "string" ? given : (call.confirmation_request?.execute_details?.command ?? "");
}

async function diffText(diff: FileDiff, workspace: string): Promise<string> {
  const { unifiedText } = await import("../../diff/unified-text.ts");
  return unifiedText(shownPath(diff.file_path || diff.file_name, workspace), diff.old_content, diff.new_content);
}

/** Return what stands below a row: live output, the last lines of what failed, and what was opened. */
function below({ item, rows, diff, isOpen, isRunning, hasFailed, text }: Shown) {
  if (isOpen && item.fetched) return html`<p class="out" role="status">${t("fetching")}</p>`;
  if (diff && !isRunning) {
    return isOpen
      ? html`<isthmus-diff
          .oldText=${diff.old_content}
          .newText=${diff.new_content}
          .path=${shownPath(diff.file_path || diff.file_name, rows.workspace)}
        ></isthmus-diff>`
      : nothing;
  }
  if (!text || !(isRunning || hasFailed || isOpen)) return nothing;
  const isExit = item.result?.is === "exit";
  return html`<isthmus-output
    ?isCut=${isRunning && Boolean(rows.lostAt)}
    .text=${isExit ? withoutExitCode(text) : text}
    .lines=${item.lines - Number(isExit)}
    ?isLive=${isRunning}
    ?isWhole=${isOpen}
    ?fromTop=${!isRunning && !hasFailed}
    @whole=${() => rows.toggle(item)}
  ></isthmus-output>`;
}
