// What was typed in cards that are not in view, and what was on the screen long enough for an answer.

import { keepComments, keptComments } from "../../diff/comment-drafts.ts";
import type { LineComment } from "../../diff/editor/line-comments.ts";
import type { DiffDraft } from "../files/diff-view.ts";

/** What the user has chosen and typed in a card that is not in view. */
export interface Draft {
  seen: unknown;
  diff: DiffDraft | undefined;
  isEditing: boolean;
  comments: LineComment[];
}

const DRAFTS = new Map<string, Draft>();
/** What was on the screen long enough for an answer, with a digest of it if it can change. */
const READ = new Map<string, string>();

/** Return what was typed about something, also before the page was loaded anew: then the comments alone. */
export function draftOf(subject: string): Draft | undefined {
  const known = DRAFTS.get(subject);
  if (known) return known;
  const comments = keptComments(subject);
  return comments.length ? { seen: undefined, diff: undefined, isEditing: false, comments } : undefined;
}

/** Keep what was typed about something; without a draft, forget it. */
export function keepDraft(subject: string, draft: Draft | undefined): void {
  if (draft) DRAFTS.set(subject, draft);
  else DRAFTS.delete(subject);
  keepComments(subject, draft?.comments ?? []);
}

/** Return whether the user has changed or commented on something that was not answered yet. */
export function hasDraft(subject: string): boolean {
  return draftOf(subject) !== undefined;
}

export function noteRead(subject: string, digest: string): void {
  READ.set(subject, digest);
}

export function wasRead(subject: string, digest: string): boolean {
  return READ.get(subject) === digest;
}
