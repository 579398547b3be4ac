// How a turn is named, counted and marked.

import { html } from "lit";
import { turnMark } from "../frame/icons.ts";
import { visibleLine } from "../text/safe.ts";
import { clock, t } from "../words.ts";
import type { Marks } from "./marks.ts";
import type { WrittenTurn } from "./written.ts";

/** Return the numbers of hunks of a turn, and of those that are undone or marked. */
export function decidedIn(turn: WrittenTurn, marks: Marks): { all: number; done: number } {
  const undone = turn.files.reduce((sum, file) => sum + file.undone, 0);
  const written = turn.files.reduce((sum, file) => sum + file.written, 0);
  return { all: written + undone, done: undone + marks.countIn(turn.number) };
}

export function markOf(turn: WrittenTurn, marks: Marks) {
  const { all, done } = decidedIn(turn, marks);
  return turnMark(turn.working ? "working" : done === 0 ? "open" : done < all ? "partly" : "decided");
}

export function counted(count: number, one: "oneTurn" | "oneFile", more: "countTurns" | "countFiles"): string {
  return count === 1 ? t(one) : t(more, count);
}

/** Return the prompt of a turn; if it is not known, the agents that were attached. */
export function nameOf({ title, agents, number }: WrittenTurn): string {
  return visibleLine(title, 120) || agents.map((agent) => visibleLine(agent, 60)).join(", ") || t("turnNumber", number);
}

/** Return the captions of both sides; before the first turn the user saw the files at the time `since`, 0 if it is not known. */
export function captions(since: number) {
  return html`<div class="captions">
    <span>${since > 0 ? t("lastSeen", clock(since)) : t("beforeTurn")}</span><i></i><span>${t("afterTurn")}</span>
  </div>`;
}
