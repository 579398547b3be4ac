// Where a reader of a list is who follows its end: at the end, or at an item that waits for the user. Pure.

/** Pixels from the end within which a reader follows it. */
const NEAR_END = 80;
/** Share of the height that this is at most: in a window at 400 %, 80 px may be most of what is seen. */
const NEAR_SHARE = 0.25;
/** Share of the height that shows what is before an item that waits: the sentence that explains it. */
const BEFORE = 0.4;
/** Height of an item in px, or all of it, that makes it one in view. */
const IN_VIEW = 120;

/** A list that scrolls, in px: its whole height, that of the window on it, and the offset of an item that waits. */
export interface Scrolled {
  total: number;
  height: number;
  /** Undefined without an item that waits. */
  waiting: number | undefined;
}

/** Return how many px from the place that is followed a reader may be. */
function nearness({ height }: Scrolled): number {
  return Math.min(NEAR_END, NEAR_SHARE * height);
}

/** Return the place in px that is followed: the end, but no further than to the item that waits. */
export function followedPlace({ total, height, waiting }: Scrolled): number {
  const end = Math.max(0, total - height);
  return waiting === undefined ? end : Math.min(end, Math.max(0, waiting - BEFORE * height));
}

/**
 * Return whether a reader at a place in px follows the end. While an item waits, only who is at the place itself does:
 * a button of it that moved between the press of a pointer and its release would not be clicked.
 */
export function isFollowing(top: number, list: Scrolled): boolean {
  const place = followedPlace(list);
  return list.waiting === undefined ? place - top < nearness(list) : Math.abs(place - top) <= 2;
}

/** Return whether a reader at a place in px is at the item that waits or behind it. */
export function isAtWaiting(top: number, list: Scrolled): boolean {
  return top >= followedPlace(list) - nearness(list);
}

/** Return where an item is for a reader: in view, or beyond an end of it; all in px. */
export function placeOf(offset: number, size: number, top: number, height: number): "above" | "in" | "below" {
  const seen = Math.min(offset + size, top + height) - Math.max(offset, top);
  if (seen >= Math.min(size, IN_VIEW)) return "in";
  return offset < top ? "above" : "below";
}
