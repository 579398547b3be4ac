// Gestures on a diff: a swipe accepts a hunk or keeps it as it was, a long press comments on a line, a double tap edits.

import { EditorView } from "@codemirror/view";
import type { Gesture } from "../../gestures/recogniser.ts";
import { watchTouch } from "../../gestures/touch.ts";
import { READ_MS } from "../../parts/base.ts";
import { type Hunk, decideHunk, hunkField } from "./diff-hunks.ts";

/** What a gesture asks for that the card around the diff does. */
export type Touched = "edit" | "comment";

export interface DiffTouch {
  parent: HTMLElement;
  right: EditorView;
  left: EditorView | undefined;
  /** Choose the line at a place of the window; return whether there is one. */
  chooseAt: (target: Element, x: number, y: number) => boolean;
  /** Whether all of a hunk was on the screen, where that is wanted. */
  wasSeen: (hunk: Hunk) => boolean;
  onTouched: (what: Touched) => void;
}

/** Listen for gestures on a diff that is not being edited; return a function that ends it. */
export function watchDiffTouch(options: DiffTouch): () => void {
  const { parent, right, chooseAt, onTouched } = options;
  const shownAt = performance.now();
  return watchTouch(parent, {
    onGesture: (gesture, target) => {
      showReach(parent, -1, "");
      if (right.state.facet(EditorView.editable)) return false;
      if (gesture.kind === "press" || gesture.kind === "double") {
        const isLine = chooseAt(target, gesture.x, gesture.y);
        if (isLine) onTouched(gesture.kind === "press" ? "comment" : "edit");
        return isLine;
      }
      const at = hunkAt(options, target, gesture);
      const hunk = right.state.field(hunkField)[at];
      if (!hunk || !gesture.direction) return false;
      const choice = gesture.direction === "right" ? "taken" : "kept";
      // As an answer, it counts for what could be read.
      const isRead = choice === "kept" || (performance.now() - shownAt >= READ_MS && options.wasSeen(hunk));
      if (!isRead) return false;
      if (gesture.kind === "swipe") return decideHunk(right, at, choice);
      showReach(parent, at, choice);
      return false;
    },
  });
}

/** Mark the button that does what the swipe would do. */
function showReach(parent: HTMLElement, hunk: number, choice: string): void {
  for (const button of parent.querySelectorAll<HTMLButtonElement>(".hb"))
    button.classList.toggle("near", button.dataset.hunk === String(hunk) && button.name === choice);
}

/** Return the number of the hunk at a place of the window; -1 if there is none. */
function hunkAt({ right, left }: DiffTouch, target: Element, { x, y }: Gesture): number {
  const hunks = right.state.field(hunkField);
  const head = target.closest(".cm-hunk, .cm-switch")?.querySelector<HTMLElement>(".hb");
  if (head) return Number(head.dataset.hunk);
  const find = (isIn: (hunk: Hunk) => boolean): number => hunks.findIndex((hunk) => !hunk.isLost && isIn(hunk));
  const old = (line: number): number =>
    find(({ oldStart, oldLines }) => oldStart < line && line <= oldStart + oldLines.length);
  const removed = target.closest<HTMLElement>(".cm-deletedLine");
  if (removed) return old(Number(removed.dataset.line));
  const view = left?.dom.contains(target) ? left : right;
  if (!view.dom.contains(target)) return -1;
  const { number } = view.state.doc.lineAt(view.posAtCoords({ x, y }, false));
  return view === left ? old(number) : find(({ start, count }) => start < number && number <= start + count);
}
