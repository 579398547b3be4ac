// The rows of a change, or of a text, that is shown in parts. Long lines take several rows. Pure.

import { type LineHunk, splitLines } from "./line-diff.ts";

/** Number of lines around a hunk that are shown. */
const MARGIN = 3;
/** Maximum number of characters of a row; a longer line goes on in the next one. */
const ROW = 2_000;
/** Number of characters around the change of a long line that are shown. */
const LINE_MARGIN = 200;

/** Kind of a row: as before, removed, added, or a note about what stands in its place. */
export type RowKind = "same" | "removed" | "added" | "note";

export interface Row {
  kind: RowKind;
  /** Number of the line, from 1, in the old text for removed lines, otherwise in the new one; 0 where a line goes on. */
  line: number;
  /** Number of the line in the old text, too, if it is the same there. */
  old?: number;
  text: string;
  /** The part of the text that differs from the other side. */
  mark?: [number, number];
}

/** The numbers of the lines of both texts, from the first one; 0 for lines without one. */
export interface LineNumbers {
  before: readonly number[];
  after: readonly number[];
}

/** A hunk with its rows; `alike` is the number of lines before it that are not shown, since they are alike. */
export interface RowHunk {
  line: number;
  alike: number;
  rows: Row[];
}

export interface RowWords {
  /** Say that so many characters of a line are alike on both sides, and not shown. */
  alikeCharacters: (count: number) => string;
  noNewline: string;
}

/** Return the hunks of a change with the lines around them, and the number of lines alike after the last one. */
export function changeRows(
  before: string,
  after: string,
  hunks: readonly LineHunk[],
  words: RowWords,
  numbers?: LineNumbers,
): { hunks: RowHunk[]; alike: number } {
  const old = splitLines(before);
  const now = splitLines(after);
  const result: RowHunk[] = [];
  let shown = 0;
  hunks.forEach(({ oldFrom, oldTo, newFrom, newTo }, index) => {
    const rows: Row[] = [];
    const from = Math.max(shown, newFrom - MARGIN);
    const next = hunks[index + 1]?.newFrom ?? now.length;
    const to = Math.min(newTo + MARGIN, next);
    const add = (kind: RowKind, lines: readonly string[], at: number, otherAt?: readonly string[], other = 0): void =>
      addRows(
        rows,
        kind,
        lines[at] as string,
        numbers ? ((kind === "removed" ? numbers.before : numbers.after)[at] ?? 0) : at + 1,
        at === lines.length - 1,
        words,
        otherAt?.[other],
      );
    const addSame = (at: number, shift: number): void => {
      const first = rows.length;
      add("same", now, at);
      const row = rows.slice(first).find((one) => one.line);
      if (row) row.old = numbers ? (numbers.before[at + shift] ?? 0) : at + shift + 1;
    };
    for (let at = from; at < newFrom; at += 1) addSame(at, oldFrom - newFrom);
    // Lines of hunks of one size are taken for the same lines before and after.
    const isPaired = oldTo - oldFrom === newTo - newFrom;
    for (let at = oldFrom; at < oldTo; at += 1)
      add("removed", old, at, isPaired ? now : undefined, newFrom + at - oldFrom);
    for (let at = newFrom; at < newTo; at += 1)
      add("added", now, at, isPaired ? old : undefined, oldFrom + at - newFrom);
    for (let at = newTo; at < to; at += 1) addSame(at, oldTo - newTo);
    const first = rows.find((row) => row.kind !== "same" && row.line)?.line ?? newFrom + 1;
    result.push({ line: first, alike: from - shown, rows });
    shown = to;
  });
  return { hunks: result, alike: now.length - shown };
}

/** Return a text as one hunk of rows. */
export function textRows(text: string, words: RowWords): RowHunk[] {
  const lines = splitLines(text);
  const rows: Row[] = [];
  lines.forEach((line, at) => addRows(rows, "added", line, at + 1, false, words));
  return [{ line: 1, alike: 0, rows }];
}

function addRows(
  rows: Row[],
  kind: RowKind,
  line: string,
  number: number,
  isLast: boolean,
  words: RowWords,
  other?: string,
): void {
  const text = line.replace(/\n$/, "");
  const [from, to] =
    kind === "same" || other === undefined ? [0, text.length] : changedPart(text, other.replace(/\n$/, ""));
  const isFolded = kind === "same" || other !== undefined;
  // Of a long line only the part that differs and what is around it, and what is left out is said.
  const first = isFolded && text.length > ROW ? Math.max(0, kind === "same" ? 0 : from - LINE_MARGIN) : 0;
  const last =
    isFolded && text.length > ROW
      ? Math.min(text.length, kind === "same" ? LINE_MARGIN : to + LINE_MARGIN)
      : text.length;
  const note = (count: number): void => {
    if (count > 0) rows.push({ kind: "note", line: 0, text: words.alikeCharacters(count) });
  };
  note(first);
  for (let at = first; at < last || at === first; at = rowEnd(text, at, last)) {
    const end = rowEnd(text, at, last);
    const mark: [number, number] = [Math.max(from, at) - at, Math.min(to, end) - at];
    rows.push({
      kind,
      line: at === first ? number : 0,
      text: text.slice(at, end),
      ...(other !== undefined && mark[0] < mark[1] ? { mark } : {}),
    });
    if (end >= last) break;
  }
  note(text.length - last);
  if (isLast && !line.endsWith("\n") && kind !== "same") rows.push({ kind: "note", line: 0, text: words.noNewline });
}

/** Return the end of a row; it goes through no word, whose letters are judged together. */
function rowEnd(text: string, at: number, last: number): number {
  const end = Math.min(at + ROW, last);
  if (end === last) return end;
  const cut = text.slice(end - 100, end + 1).search(/[^\p{L}]\p{L}+$/u);
  return cut < 0 ? end : end - 99 + cut;
}

/** Return the part of a line between what it has in common with another one at its beginning and at its end. */
export function changedPart(text: string, other: string): [number, number] {
  const shorter = Math.min(text.length, other.length);
  let from = 0;
  let back = 0;
  while (from < shorter && text[from] === other[from]) from += 1;
  while (back < shorter - from && text[text.length - 1 - back] === other[other.length - 1 - back]) back += 1;
  return [from, text.length - back];
}
