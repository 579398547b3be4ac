// The rows of a file that was written: both sides beside each other, with what is alike folded. Pure.

import { splitLines } from "../diff/line-diff.ts";
import { changedPart } from "../diff/long-rows.ts";
import { type HunkMarks, type Mark as Words, hunkMarks } from "../diff/words.ts";
import { type Mark, isBack } from "./marks.ts";
import type { WrittenDiff, WrittenHunk } from "./written.ts";

/** Number of lines around a hunk that are shown, and the smallest number of lines that are folded. */
const MARGIN = 3;
const SMALLEST_FOLD = 4;
/** Maximum number of characters of a hunk whose lines are compared by words: the page waits for it. */
const LONGEST_MARKED = 60_000;
/** What is marked in hunks: a file is drawn again with each key. */
const MARKS = new WeakMap<WrittenHunk, HunkMarks>();

/** A line of one side: its number from 1, and its text without the line end. */
export interface SideLine {
  number: number;
  text: string;
  /** Where it stands, from 0: in the old text, or in the new one. */
  source: "old" | "new";
  at: number;
  /** The parts of the text that differ from the line on the other side; none if it stands for no other line. */
  marks: readonly Words[];
}

export type Part =
  | { kind: "alike"; before: SideLine[]; after: SideLine[] }
  | { kind: "fold"; count: number; from: number }
  | { kind: "hunk"; hunk: WrittenHunk; isBack: boolean; before: SideLine[]; after: SideLine[]; lacksNewline: boolean };

/** Return the parts of a file. `markOf` says what is to be done with a hunk, `unfolded` are folds that are open, by their first line. */
export function partsOf(
  diff: WrittenDiff,
  markOf: (id: string) => Mark | undefined,
  unfolded: ReadonlySet<number>,
): Part[] {
  const old = splitLines(diff.old ?? "");
  const now = splitLines(diff.new ?? "");
  const parts: Part[] = [];
  let oldAt = 0;
  let newAt = 0;
  const alike = (end: number, isFirst: boolean, isLast: boolean): void => {
    const count = end - oldAt;
    const first = isFirst ? 0 : Math.min(MARGIN, count);
    const last = isLast ? 0 : Math.min(MARGIN, count - first);
    const hidden = count - first - last;
    const isFolded = hidden >= SMALLEST_FOLD && !unfolded.has(oldAt);
    if (!isFolded) show(count);
    else {
      const from = oldAt;
      show(first);
      parts.push({ kind: "fold", count: hidden, from });
      oldAt += hidden;
      newAt += hidden;
      show(last);
    }
  };
  const show = (count: number): void => {
    if (count <= 0) return;
    parts.push({
      kind: "alike",
      before: lines(old.slice(oldAt, oldAt + count), oldAt, "old"),
      after: lines(now.slice(newAt, newAt + count), newAt, "new"),
    });
    oldAt += count;
    newAt += count;
  };
  const hunks = [...diff.hunks].sort(
    (one, other) => one.old_start - other.old_start || one.new_start - other.new_start,
  );
  hunks.forEach((hunk, index) => {
    if (hunk.old_start > oldAt) alike(hunk.old_start, index === 0, false);
    parts.push(hunkPart(hunk, markOf(hunk.id)));
    oldAt = hunk.old_start + hunk.old_lines.length;
    // Of a hunk that went back both texts have the old lines.
    newAt = hunk.new_start + (hunk.state === "undone" ? hunk.old_lines : hunk.new_lines).length;
  });
  if (old.length > oldAt) alike(old.length, hunks.length === 0, true);
  return parts;
}

function hunkPart(hunk: WrittenHunk, mark: Mark | undefined): Part {
  const all = [...hunk.old_lines, ...hunk.new_lines];
  const back = isBack(hunk, mark);
  const lacksNewline = all.some((line) => !line.endsWith("\n"));
  // Line ends are shown where they are a part of the change.
  const areMixed = new Set(all.map((line) => line.endsWith("\r\n"))).size > 1;
  const before = lines(hunk.old_lines, hunk.old_start, "old", hunk.old_start, areMixed);
  if (back)
    return {
      kind: "hunk",
      hunk,
      isBack: true,
      before,
      after: lines(hunk.old_lines, hunk.new_start, "old", hunk.old_start, areMixed),
      lacksNewline,
    };
  const after = lines(hunk.new_lines, hunk.new_start, "new", hunk.new_start, areMixed);
  let marks = MARKS.get(hunk);
  if (!marks) MARKS.set(hunk, (marks = marksOf(before, after)));
  before.forEach((line, at) => (line.marks = marks.old[at] ?? []));
  after.forEach((line, at) => (line.marks = marks.now[at] ?? []));
  return { kind: "hunk", hunk, isBack: false, before, after, lacksNewline };
}

/** Return the words that differ, or of a long hunk one part of each of its lines. */
function marksOf(before: readonly SideLine[], after: readonly SideLine[]): HunkMarks {
  const [old, now] = [before, after].map((side) => side.map((line) => line.text)) as [string[], string[]];
  const characters = [...old, ...now].reduce((sum, text) => sum + text.length, 0);
  if (characters <= LONGEST_MARKED) return hunkMarks(old, now);
  // Lines of hunks of one size are taken for the same lines before and after.
  if (old.length !== now.length) return { old: [], now: [] };
  return {
    old: old.map((text, at) => [changedPart(text, now[at] ?? "")]),
    now: now.map((text, at) => [changedPart(text, old[at] ?? "")]),
  };
}

/** Return lines that have numbers after `from`, and stand in a text from `place` on. */
function lines(
  texts: readonly string[],
  from: number,
  source: "old" | "new",
  place = from,
  areEndsShown = false,
): SideLine[] {
  return texts.map((text, at) => ({
    number: from + at + 1,
    text: text.replace(areEndsShown ? /\n$/ : /\r?\n$/, ""),
    source,
    at: place + at,
    marks: [],
  }));
}
