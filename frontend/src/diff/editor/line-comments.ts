// Comments of the user on lines of a diff. They gather until the next answer, and go back to the agent with it.

import { splitLines } from "../line-diff.ts";

export interface LineComment {
  id: number;
  /** Side of the diff: the text as it is, or as the agent proposes it. */
  side: "old" | "new";
  /** Number of the line in the text of its side, from 1. */
  line: number;
  text: string;
  /** The line, without its end, so that it is found again in another text. */
  quote: string;
}

export interface Place {
  side: "old" | "new";
  line: number;
  /** Number of the line as it is shown, where what was kept or typed above has moved it. */
  shown?: number;
}

/** A line as it will be written: its number from 1, and its text. */
export interface WrittenLine {
  line: number;
  text: string;
}

/** Maximum number of characters of a quoted line. */
const QUOTE = 300;

let last = 0;

export function newComment({ side, line }: Place, quote = ""): LineComment {
  last += 1;
  return { id: last, side, line, text: "", quote };
}

/** Return the comments that say something, from the first line to the last. */
export function saidComments(comments: readonly LineComment[]): LineComment[] {
  return comments
    .filter((one) => one.text.trim())
    .sort((one, other) => one.line - other.line || (one.side === "old" ? -1 : 1));
}

/**
 * Return comments for the agent, which reads them in English whatever the language of the page: for each the path and the
 * line, the line quoted, and the comment. `writtenOf` returns the line of a comment in the text that is written with the
 * answer; a comment on another line, or with nothing written, names the line of its own text, and says of which.
 */
export function commentText(
  path: string,
  comments: readonly LineComment[],
  writtenOf?: (comment: LineComment) => WrittenLine | undefined,
): string {
  return saidComments(comments)
    .map((comment) => {
      const written = comment.side === "new" ? writtenOf?.(comment) : undefined;
      const isWritten = written !== undefined && written.text === comment.quote;
      const about =
        comment.side === "old" ? " (the line as it was)" : isWritten ? "" : " (the line as you proposed it)";
      const quote = comment.quote.trim() ? `> ${cut(comment.quote)}\n` : "";
      return `${path}:${isWritten ? written.line : comment.line}${about}\n${quote}${comment.text.trim().replace(/\r\n?/g, "\n")}`;
    })
    .join("\n\n");
}

function cut(line: string): string {
  return line.length > QUOTE ? `${line.slice(0, QUOTE)}\u2026` : line;
}

/** Return comments at the lines where what they quote is now: the same line, otherwise the nearest with the same text. */
export function anchored(comments: readonly LineComment[], before: string, after: string): LineComment[] {
  if (!comments.length) return [];
  const texts = { old: splitLines(before).map(plain), new: splitLines(after).map(plain) };
  return comments.map((comment) => {
    const lines = texts[comment.side];
    if (lines[comment.line - 1] === comment.quote) return comment;
    let nearest = 0;
    lines.forEach((line, at) => {
      const isNearer = !nearest || Math.abs(at + 1 - comment.line) < Math.abs(nearest - comment.line);
      if (line === comment.quote && isNearer) nearest = at + 1;
    });
    return { ...comment, line: nearest || Math.max(1, Math.min(comment.line, lines.length)) };
  });
}

/** Return a line of a text by its number from 1, without its end. */
export function lineOf(text: string, line: number): string {
  return plain(splitLines(text)[line - 1] ?? "");
}

function plain(line: string): string {
  return line.replace(/\r?\n$/, "");
}
