// A line of code in parts that differ in their colour, or in whether they are marked. Pure.

import { exact, exactParts } from "../text/safe.ts";

export interface Span {
  from: number;
  to: number;
  name: string;
}

export interface Piece {
  text: string;
  name: string;
  isMarked: boolean;
}

/** Return a line in pieces, in order; all of its text is in one of them. */
export function piecesOf(
  text: string,
  spans: readonly Span[],
  marks: readonly (readonly [number, number])[] = [],
): Piece[] {
  const cuts = new Set([0, text.length, ...marks.flat(), ...spans.flatMap(({ from, to }) => [from, to])]);
  const places = [...cuts].filter((at) => at <= text.length).sort((one, other) => one - other);
  const pieces: Piece[] = [];
  places.forEach((from, index) => {
    const to = places[index + 1];
    if (to === undefined) return;
    const name = spans.find((span) => span.from <= from && to <= span.to)?.name ?? "";
    pieces.push({ text: text.slice(from, to), name, isMarked: marks.some((mark) => mark[0] <= from && to <= mark[1]) });
  });
  return pieces;
}

/**
 * Return a line to approve in pieces. Characters that do not show get stand-ins; the line then has no colours, and one mark
 * from the first to the last.
 */
export function exactPieces(
  text: string,
  spans: readonly Span[],
  marks: readonly (readonly [number, number])[] = [],
): Piece[] {
  if (exact(text) === text) return piecesOf(text, spans, marks);
  const [from, to] = [marks[0]?.[0] ?? text.length, marks.at(-1)?.[1] ?? text.length];
  return exactParts(text, from, to).map((part, at) => ({ text: part, name: "", isMarked: at === 1 }));
}
