// The marks in the map of a long change: few enough to be told apart. Pure.

/** Height in px of a mark, and between the upper ends of two. */
export const MARK_PX = 5;
const PITCH_PX = 6;

/** A mark of one hunk, or of several that would cover each other. `hunk` is the first of them, from 0. */
export interface MapMark {
  top: number;
  hunk: number;
  /** Whether all of them were on the screen. */
  isSeen: boolean;
}

/** Return the marks of hunks that begin at these shares, from 0 to 1 and in order, in a map of this height in px. */
export function mapMarks(shares: readonly number[], seen: readonly boolean[], height: number): MapMark[] {
  const marks: MapMark[] = [];
  shares.forEach((share, hunk) => {
    const top = Math.max(0, Math.min(height - MARK_PX, Math.round(share * height)));
    const last = marks.at(-1);
    const isSeen = seen[hunk] ?? false;
    if (last && top < last.top + PITCH_PX) last.isSeen &&= isSeen;
    else marks.push({ top, hunk, isSeen });
  });
  return marks;
}

/** Return the mark at a place of the map, or the nearest one within a few px; undefined where there is none. */
export function markAt(marks: readonly MapMark[], y: number): MapMark | undefined {
  const distance = (mark: MapMark): number => Math.abs(y - mark.top - MARK_PX / 2);
  const found = marks.reduce<MapMark | undefined>(
    (best, mark) => (best && distance(best) <= distance(mark) ? best : mark),
    undefined,
  );
  return found && distance(found) <= 2 * PITCH_PX ? found : undefined;
}
