// The rows of the inbox: who asks and where, what, and what it comes to; of answered ones how they ended.

import { html, nothing } from "lit";
import { aboutLines, fromLine, nameLine } from "../parts/cards/asker.ts";
import { outcomeText } from "../parts/cards/outcome.ts";
import { shownPath } from "../questions/question.ts";
import { fullWordsOf } from "../questions/option-words.ts";
import { ask } from "../questions/words.ts";
import { type Outcome, folderNameOf, folderOf } from "../server/reviews.ts";
import { visible, visibleLine } from "../text/safe.ts";
import type { SessionList } from "../server/sessions.ts";
import type { Question } from "../server/store.ts";
import { age, clock, t } from "../words.ts";
import type { Item } from "./items.ts";

interface Row {
  isChosen: boolean;
  /** Name of the agent of the tasks. */
  agent: string;
  sessions: SessionList;
  outcome: Outcome | undefined;
  now: number;
  open: () => void;
  /** Words for what a swipe to the left does; empty if it does nothing. */
  swipe: string;
}

/** Return the row of an item. */
export function itemRow(item: Item, row: Row) {
  const { review, question, isAnswered } = item;
  const lines = review ? reviewLines(item, row) : question ? questionLines(item, question, row) : undefined;
  if (!lines) return nothing;
  return html`<li
    class="item ${row.isChosen ? "on" : ""} ${isAnswered ? "done" : ""}"
    aria-current=${row.isChosen ? "true" : nothing}
    data-key=${isAnswered ? nothing : item.key}
    data-swipe=${row.swipe || nothing}
  >
    <button class="cover" ?disabled=${isAnswered && !review} @click=${row.open}>
      ${lines.from} <span class="what">${oneLine(lines.what)}</span>
      <span class="peek">${oneLine(lines.peek)}</span>
    </button>
  </li>`;
}

/** Return a line that is cut with an ellipsis: a bare text in a flex box would be cut within a letter. */
function oneLine(line: unknown) {
  return typeof line === "string" ? html`<span class="cut" dir="auto">${line}</span>` : line;
}

function questionLines({ isAnswered, endedAt, answers, isOwn }: Item, question: Question, row: Row) {
  const time = isAnswered ? clock(endedAt / 1000) : age(question.task.changedAt, row.now);
  const from = fromLine(question, row.sessions, row.agent, time);
  const { what, peek } = aboutLines(question);
  return { from, what, peek: isAnswered ? answeredText(question, answers, isOwn === true) : peek };
}

/** Return who answered, and how, as far as that is known. */
function answeredText({ calls }: Question, answers: Item["answers"], isOwn: boolean): string {
  const [callId, answered] = [...answers].at(-1) ?? [];
  const options = calls.find((call) => call.tool_call_id === callId)?.confirmation_request?.options ?? [];
  const option = options.find((one) => one.id === answered?.optionId);
  const words = option ? fullWordsOf(option) : "";
  if (isOwn) return words ? ask("youChose", words) : ask("youAnswered");
  const by = visibleLine(answered?.by ?? "", 60) || t("someone");
  return words ? t("answeredWith", by, words) : t("answered", by);
}

function reviewLines({ review, isAnswered }: Item, { outcome, now }: Row) {
  if (!review) return undefined;
  const folder = folderOf(review) || review.folders[0] || "";
  const time = isAnswered && outcome ? clock(outcome.at / 1000) : age(review.at, now);
  const what =
    review.kind === "review"
      ? `${t(review.isNew ? "create" : "change")} ${shownPath(review.about, folderOf(review))}`
      : visibleLine(review.about, 160);
  return {
    from: nameLine("", visibleLine(review.agent, 80), folderNameOf(review), time),
    what,
    peek: isAnswered ? outcomeText(outcome) : visible(folder),
  };
}
