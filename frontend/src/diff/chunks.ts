// What differs now between the text as it is and the text to be written, by lines, as a part of the state of an editor.

import { type EditorState, Facet, StateEffect, StateField, type Text } from "@codemirror/state";
import { comparable, editorHunks, type LineHunk } from "./line-diff.ts";
import { type HunkMarks, hunkMarks } from "./words.ts";

/** Both texts, and what differs, in order. Lines count from 0. */
export interface Difference {
  old: Text;
  now: Text;
  chunks: readonly LineHunk[];
}

export const oldText = Facet.define<Text, Text | undefined>({ combine: (texts) => texts[0] });
export const differenceSet = StateEffect.define<Difference>();

/** The difference; in an editor that knows the old text it follows what is typed. */
export const differenceField = StateField.define<Difference | undefined>({
  create(state) {
    const old = state.facet(oldText);
    return old && differenceBetween(old, state.doc);
  },
  update(difference, transaction) {
    for (const effect of transaction.effects) if (effect.is(differenceSet)) return effect.value;
    const old = transaction.startState.facet(oldText);
    return old && transaction.docChanged ? differenceBetween(old, transaction.newDoc, difference) : difference;
  },
});

/** Return what differs. What was found of the same chunks in a difference before is taken over. */
export function differenceBetween(old: Text, now: Text, known?: Difference): Difference {
  const after = now.toString();
  const before = comparable(old.toString(), after);
  const chunks = editorHunks(before, after);
  const places = new Map(known?.chunks.map((chunk) => [chunk.oldFrom, chunk]));
  for (const chunk of chunks) {
    const same = places.get(chunk.oldFrom);
    const marks = same && MARKS.get(same);
    if (known && marks && isSame(known.now, same, now, chunk)) MARKS.set(chunk, marks);
  }
  return { old, now, chunks };
}

function isSame(before: Text, one: LineHunk, now: Text, other: LineHunk): boolean {
  if (one.oldTo !== other.oldTo || one.newTo - one.newFrom !== other.newTo - other.newFrom) return false;
  for (let at = 0; at < one.newTo - one.newFrom; at += 1) {
    const [a, b] = [one.newFrom + at + 1, other.newFrom + at + 1];
    if (a > before.lines || b > now.lines || before.line(a).text !== now.line(b).text) return false;
  }
  return true;
}

export function differenceOf(state: EditorState): Difference | undefined {
  return state.field(differenceField, false);
}

const MARKS = new WeakMap<LineHunk, HunkMarks>();

/** Return what is marked in the lines of a chunk; it is found once. */
export function marksOf({ old, now }: Difference, chunk: LineHunk): HunkMarks {
  let marks = MARKS.get(chunk);
  if (!marks) {
    marks = hunkMarks(linesOf(old, chunk.oldFrom, chunk.oldTo), linesOf(now, chunk.newFrom, chunk.newTo));
    MARKS.set(chunk, marks);
  }
  return marks;
}

/** Return lines of a text; they count from 0, and the last one is not included. */
export function linesOf(text: Text, from: number, to: number): string[] {
  const lines: string[] = [];
  for (let line = from; line < Math.min(to, text.lines); line += 1) lines.push(text.line(line + 1).text);
  return lines;
}

/** Return the chunk that a line is in, or the last one before it, and whether the line is in it. Lines count from 0. */
export function chunkAt(
  chunks: readonly LineHunk[],
  line: number,
  isOld: boolean,
): { chunk: LineHunk | undefined; isIn: boolean } {
  let low = 0;
  let high = chunks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const chunk = chunks[middle] as LineHunk;
    if ((isOld ? chunk.oldFrom : chunk.newFrom) <= line) low = middle + 1;
    else high = middle;
  }
  const chunk = chunks[low - 1];
  return { chunk, isIn: chunk !== undefined && line < (isOld ? chunk.oldTo : chunk.newTo) };
}

/** Return the line of the old text that an unchanged line of the new one is; both count from 0. */
export function oldLineOf(chunks: readonly LineHunk[], line: number): number {
  const { chunk } = chunkAt(chunks, line, false);
  return chunk ? line - chunk.newTo + chunk.oldTo : line;
}
