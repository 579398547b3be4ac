// The hunks of a diff as units that are taken or kept as they were, while the text around and in them is edited.

import { invertedEffects } from "@codemirror/commands";
import {
  type ChangeSpec,
  type Extension,
  StateEffect,
  StateField,
  type Text,
  type Transaction,
} from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { comparable, editorHunks } from "../line-diff.ts";

/** A single hunk is answered with the whole change. */
export const MINIMUM = 2;

/** What the user decided about a hunk: nothing yet (it is written as shown), that it is written, or kept as it was. */
export type Choice = "open" | "taken" | "kept";

/** A hunk of the proposal. Lines count from 0; `start` and `count` are its place in the text to be written. */
export interface Hunk {
  readonly start: number;
  readonly count: number;
  readonly oldStart: number;
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  readonly isKept: boolean;
  /** Whether the user said that it is to be written. */
  readonly isTaken: boolean;
  /** Whether an edit went over its border, so that it is a unit no more. */
  readonly isLost: boolean;
}

export function choiceOf({ isKept, isTaken }: Hunk): Choice {
  return isKept ? "kept" : isTaken ? "taken" : "open";
}

export interface HunkWords {
  place: (number: number, all: number) => string;
  /** Say which lines a hunk is about, the first and the last. */
  lines: (from: number, to: number) => string;
  alike: (count: number) => string;
  take: string;
  keep: string;
  taken: string;
  kept: string;
}

/** Return the lines of a text from one position to another, and the number of the first one from 0. */
export function linesIn(doc: Text, from: number, to: number): { start: number; lines: string[] } {
  if (from > doc.length) return { start: doc.lines, lines: [] };
  const start = doc.lineAt(from).number - 1;
  const lines: string[] = [];
  const end = to > from ? doc.lineAt(Math.min(to - 1, doc.length)).number : start;
  for (let line = start + 1; line <= end; line += 1) lines.push(doc.line(line).text);
  return { start, lines };
}

/** Return the change that puts other lines in the place of some, whatever stands at the end of the text. */
function replaced(doc: Text, start: number, count: number, lines: readonly string[]): ChangeSpec {
  const end = start + count;
  if (end < doc.lines)
    return {
      from: doc.line(start + 1).from,
      to: doc.line(end + 1).from,
      insert: lines.map((line) => `${line}\n`).join(""),
    };
  if (start > 0) return { from: doc.line(start).to, to: doc.length, insert: lines.map((line) => `\n${line}`).join("") };
  return { from: 0, to: doc.length, insert: lines.join("\n") };
}

/** Return the hunks between two texts, with the numbers that they have in editors and terminals, too. */
export function hunksOf(before: Text, after: Text): Hunk[] {
  const now = after.toString();
  const old = comparable(before.toString(), now);
  const [oldLines, newLines] = [old.split("\n"), now.split("\n")];
  return editorHunks(old, now).map(({ oldFrom, oldTo, newFrom, newTo }) => ({
    start: newFrom,
    count: newTo - newFrom,
    oldStart: oldFrom,
    isKept: false,
    isTaken: false,
    isLost: false,
    oldLines: oldLines.slice(oldFrom, oldTo),
    newLines: newLines.slice(newFrom, newTo),
  }));
}

/** Return the changes from one text to another, by lines. */
export function changesBetween(from: Text, to: Text): ChangeSpec[] {
  return hunksOf(from, to).map((hunk) => replaced(from, hunk.oldStart, hunk.oldLines.length, hunk.newLines));
}

/** Return the line of another text that stands for a line of one; lines count from 1. */
export function sameLine(from: Text, to: Text, line: number): number {
  let shift = 0;
  for (const hunk of hunksOf(from, to)) {
    if (line - 1 < hunk.oldStart) break;
    if (line - 1 < hunk.oldStart + hunk.oldLines.length) return Math.max(1, Math.min(hunk.start + 1, to.lines));
    shift = hunk.start + hunk.newLines.length - hunk.oldStart - hunk.oldLines.length;
  }
  return Math.max(1, Math.min(line + shift, to.lines));
}

const decided = StateEffect.define<{ index: number; choice: Choice; count: number }>();
export const hunksRestored = StateEffect.define<readonly Hunk[]>();

export const hunkField = StateField.define<readonly Hunk[]>({
  create: () => [],
  update(hunks, transaction) {
    let now = hunks;
    for (const effect of transaction.effects) {
      if (effect.is(hunksRestored)) return effect.value;
      if (effect.is(decided)) now = decide(now, effect.value);
    }
    return now === hunks && transaction.docChanged ? hunks.map((hunk) => moved(hunk, transaction)) : now;
  },
});

function decide(
  hunks: readonly Hunk[],
  { index, choice, count }: { index: number; choice: Choice; count: number },
): readonly Hunk[] {
  const delta = count - (hunks[index]?.count ?? 0);
  return hunks.map((hunk, at) =>
    at < index
      ? hunk
      : at === index
        ? { ...hunk, isKept: choice === "kept", isTaken: choice === "taken", count }
        : { ...hunk, start: hunk.start + delta },
  );
}

/** Return a hunk after an edit of the user. */
function moved(hunk: Hunk, transaction: Transaction): Hunk {
  let { start, count, isLost } = hunk;
  const old = transaction.startState.doc;
  const end = hunk.start + hunk.count;
  transaction.changes.iterChanges((fromA, toA, _fromB, _toB, inserted) => {
    const first = old.lineAt(fromA).number - 1;
    const last = old.lineAt(toA).number - 1;
    const delta = inserted.lines - 1 - (last - first);
    if (last < hunk.start) start += delta;
    else if (first >= end) return;
    else if (first >= hunk.start && last < end) count += delta;
    else isLost = true;
  });
  return start === hunk.start && count === hunk.count && isLost === hunk.isLost
    ? hunk
    : { ...hunk, start, count, isLost };
}

/** Decide about a hunk; return whether anything changed. */
export function decideHunk(view: EditorView, index: number, choice: Choice): boolean {
  const hunk = view.state.field(hunkField)[index];
  if (!hunk || view.state.field(hunkField).length < MINIMUM || hunk.isLost || choiceOf(hunk) === choice) return false;
  const isKept = choice === "kept";
  const lines = isKept ? hunk.oldLines : hunk.newLines;
  view.dispatch({
    changes: hunk.isKept === isKept ? [] : replaced(view.state.doc, hunk.start, hunk.count, lines),
    effects: decided.of({ index, choice, count: hunk.isKept === isKept ? hunk.count : lines.length }),
  });
  return true;
}

/** The hunks in the text to be written, which follow its changes. */
export function hunkUnits(hunks: readonly Hunk[]): Extension {
  return [
    hunkField.init(() => hunks),
    invertedEffects.of((transaction) =>
      transaction.effects.flatMap((effect) => {
        const before = effect.is(decided) ? transaction.startState.field(hunkField)[effect.value.index] : undefined;
        return effect.is(decided) && before
          ? [decided.of({ index: effect.value.index, choice: choiceOf(before), count: before.count })]
          : [];
      }),
    ),
  ];
}
