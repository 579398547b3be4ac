// Whether a change is so large that it must have been on the screen, all of it, before it can be allowed. Pure.

import { type LineHunk, lineHunks, splitLines } from "./line-diff.ts";

/** Above one of these each hunk is to be seen: characters of both texts, changed lines, characters of a changed line. */
export const LIMITS = { characters: 200_000, lines: 400, line: 2_000 };
/** Above these a text is shown in parts, and cannot be edited in the page. */
const EDITOR_LIMITS = { characters: 400_000, line: 20_000 };

/** Return whether a text to allow is so long that all of it is to be seen first. */
export function isLongText(text: string): boolean {
  return text.length > LIMITS.characters || splitLines(text).length > LIMITS.lines || hasLine(text, LIMITS.line);
}

/** Return whether a line of a text has so many characters. */
function hasLine(text: string, length: number): boolean {
  for (let from = 0; from + length <= text.length;) {
    const end = text.indexOf("\n", from);
    if ((end < 0 ? text.length : end) - from >= length) return true;
    from = end + 1;
  }
  return false;
}

/** Return whether an editor can show a change, with each character of it. */
export function fitsEditor(before: string, after: string): boolean {
  return (
    before.length + after.length <= EDITOR_LIMITS.characters &&
    ![before, after].some((text) => hasLine(text, EDITOR_LIMITS.line)) &&
    haveOneLineEnd(before, after)
  );
}

/** Return whether a change is to be seen as a whole. Texts of more characters than the limit are not compared for it. */
export function mustBeSeen(before: string, after: string): boolean {
  if (before.length + after.length > LIMITS.characters) return true;
  const old = splitLines(before);
  const now = splitLines(after);
  return isLargeChange(old, now, lineHunks(old, now));
}

function isLargeChange(old: readonly string[], now: readonly string[], hunks: readonly LineHunk[]): boolean {
  let count = 0;
  for (const { oldFrom, oldTo, newFrom, newTo } of hunks) {
    count += oldTo - oldFrom + newTo - newFrom;
    if (count > LIMITS.lines) return true;
    for (let at = oldFrom; at < oldTo; at += 1) if ((old[at] as string).length > LIMITS.line) return true;
    for (let at = newFrom; at < newTo; at += 1) if ((now[at] as string).length > LIMITS.line) return true;
  }
  return false;
}

/** Return whether texts have one kind of line ends in all, LF or CRLF: an editor shows no other, and writes one. */
function haveOneLineEnd(...texts: readonly string[]): boolean {
  const kinds = new Set<string>();
  for (const text of texts) {
    if (/\r(?!\n)/.test(text)) return false;
    if (text.includes("\r\n")) kinds.add("CRLF");
    if (/(?<!\r)\n/.test(text)) kinds.add("LF");
  }
  return kinds.size <= 1;
}
