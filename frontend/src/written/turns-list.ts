// The list beside what was written: the turns, how far each is decided, and what was undone.

import { html, nothing } from "lit";
import { icon } from "../frame/icons.ts";
import { shownCounts } from "../parts/files/counts.ts";
import { PAGE } from "../place.ts";
import { clock, t } from "../words.ts";
import type { Marks } from "./marks.ts";
import { counted, decidedIn, markOf, nameOf } from "./turns.ts";
import type { Listing, WrittenTurn } from "./written.ts";

export interface TurnsView {
  listing: Listing | undefined;
  /** Name of the folder that was written in. */
  folder: string;
  chosen: number;
  marks: Marks;
  isOff: boolean;
  /** Return a path as it is shown. */
  pathOf: (path: string) => string;
  choose: (turn: number) => void;
  takeBack: (undo: number) => void;
}

export function turnsList(view: TurnsView) {
  const { listing } = view;
  return html`<div class="head">
      <a class="b small quiet icon" href=${PAGE} aria-label=${t("back")}>${icon("back")}</a>
      ${view.folder ? html`<h2 class="cut" dir="auto">${view.folder}</h2>` : nothing}
    </div>
    <div class="scroll" tabindex="0">
      ${listing && listing.since > 0 ? html`<p class="sm t2 about-turns">${t("lookedAt", clock(listing.since))}</p>` : nothing}
      ${listing?.partial ? html`<p class="sm t2 about-turns">${t("partlyFollowed")}</p>` : nothing}
      ${listing?.turns.length ? sum(listing.turns) : nothing}
      <ul>
        ${listing?.turns.map((turn) => turnRow(turn, view))}
      </ul>
      ${listing?.undos.length ? undone(listing, view) : nothing}
    </div>`;
}

function sum(turns: readonly WrittenTurn[]) {
  const files = new Set(turns.flatMap((turn) => turn.files.map((file) => file.path))).size;
  const total = { added: 0, removed: 0 };
  for (const { added, removed } of turns) {
    total.added += added;
    total.removed += removed;
  }
  return html`<p class="sm t2 about-turns phone-only">${t("undoCanBack")}</p>
    <div class="sect row">
      <span>${counted(turns.length, "oneTurn", "countTurns")}, ${counted(files, "oneFile", "countFiles")}</span
      ><span class="right">${shownCounts(total)}</span>
    </div>`;
}

function turnRow(turn: WrittenTurn, { chosen, marks, choose }: TurnsView) {
  const isChosen = turn.number === chosen;
  const { all, done } = decidedIn(turn, marks);
  const count = counted(turn.files.length, "oneFile", "countFiles");
  return html`<li class="item ${isChosen ? "on" : ""}" aria-current=${isChosen ? "true" : nothing}>
    <button class="cover" @click=${() => choose(turn.number)}>
      <span class="turn-name"
        >${markOf(turn, marks)}<b class="cut" dir="auto">${nameOf(turn)}</b
        ><time class="xs t3 num">${clock(turn.began_at)}</time></span
      >
      <span class="xs t3 turn-counts"
        >${turn.working ? t("soFar", count) : count} ·
        ${shownCounts(turn)}${done ? html` · ${t("decidedOf", done, all)}` : nothing}</span
      >
    </button>
  </li>`;
}

/** Return the newest undos, each of which can be taken back. */
function undone({ undos }: Listing, { isOff, pathOf, takeBack }: TurnsView) {
  return html`<h3 class="sect">${t("undone")}</h3>
    <ul>
      ${undos
        .slice(-5)
        .reverse()
        .map(
          (one) =>
            html` <li class="undone-row">
              <span class="cut" dir="auto">${one.files.map(pathOf).join(", ")}</span
              ><time class="xs t3 num">${clock(one.at)}</time>
              <button class="b small quiet" aria-disabled=${isOff} @click=${() => takeBack(one.number)}>
                ${t("takeBackHunk")}
              </button>
            </li>`,
        )}
    </ul>`;
}
