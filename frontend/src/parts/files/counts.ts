// How many lines a change adds and removes, as it is shown.

import { html } from "lit";
import { type LineCounts, countLines } from "../../diff/diffs.ts";
import type { FileDiff } from "../../server/protocol.ts";
import { numeral } from "../../language.ts";

const COUNTS = new WeakMap<FileDiff, LineCounts>();

export function countsOf(diff: FileDiff) {
  let counts = COUNTS.get(diff);
  if (!counts) COUNTS.set(diff, (counts = countLines(diff.old_content ?? "", diff.new_content)));
  return shownCounts(counts);
}

export function shownCounts({ added, removed }: LineCounts) {
  return html`<span class="num"
    ><span class="add">+${numeral(added)}</span> <span class="del">−${numeral(removed)}</span></span
  >`;
}
