// A line of code in parts that differ in their colour, or in whether they are marked. Pure.

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
export function piecesOf(text: string, spans: readonly Span[], mark: readonly [number, number] = [0, 0]): Piece[] {
  const cuts = new Set([0, text.length, ...mark, ...spans.flatMap(({ from, to }) => [from, to])]);
  const places = [...cuts].filter((at) => at <= text.length).sort((one, other) => one - other);
  const pieces: Piece[] = [];
  places.forEach((from, index) => {
    const to = places[index + 1];
    if (to === undefined) return;
    const name = spans.find((span) => span.from <= from && to <= span.to)?.name ?? "";
    pieces.push({ text: text.slice(from, to), name, isMarked: mark[0] <= from && to <= mark[1] });
  });
  return pieces;
}
