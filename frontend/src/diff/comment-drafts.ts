// Comments that wait for an answer, kept in this browser: they are there again after the page was loaded anew.

import { COMMENTS as KEY } from "../server/session.ts";
import { type LineComment, newComment, saidComments } from "./editor/line-comments.ts";

/** Comments of at most so many questions are kept, and for so long, in ms. */
const MAXIMUM = 50;
const KEPT_MS = 30 * 24 * 3600 * 1000;

type Stored = Pick<LineComment, "side" | "line" | "text" | "quote">;
type Shelf = Record<string, { at: number; comments: Stored[] } | null>;

function shelf(): Shelf {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? (found as Shelf) : {};
  } catch {
    return {};
  }
}

/** Keep the comments on something that is asked; without any, forget them. */
export function keepComments(subject: string, comments: readonly LineComment[], now = Date.now()): void {
  const said = saidComments(comments).map(({ side, line, text, quote }) => ({ side, line, text, quote }));
  const kept = Object.entries(shelf())
    .filter(([key, found]) => key !== subject && now - (found?.at ?? 0) < KEPT_MS)
    .sort(([, one], [, other]) => (other?.at ?? 0) - (one?.at ?? 0))
    .slice(0, MAXIMUM - 1);
  const all = Object.fromEntries(said.length ? [[subject, { at: now, comments: said }], ...kept] : kept);
  try {
    if (Object.keys(all).length) localStorage.setItem(KEY, JSON.stringify(all));
    else localStorage.removeItem(KEY);
  } catch {
    // Without room they are kept as long as the page is open.
  }
}

/** Return the comments that were kept for something that is asked. */
export function keptComments(subject: string): LineComment[] {
  const found = Object.hasOwn(shelf(), subject) ? shelf()[subject]?.comments : undefined;
  return (Array.isArray(found) ? found : [])
    .filter(isStored)
    .map((one) => ({ ...newComment(one, one.quote), text: one.text }));
}

function isStored(one: Partial<Stored> | null): one is Stored {
  return (
    (one?.side === "old" || one?.side === "new") &&
    Number.isInteger(one.line) &&
    typeof one.text === "string" &&
    typeof one.quote === "string"
  );
}
