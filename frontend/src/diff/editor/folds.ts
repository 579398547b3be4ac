// Unchanged stretches of an editor that are folded away, each with a line that says how many lines it is and opens it.

import { type EditorState, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import type { LineHunk } from "../line-diff.ts";

/** Numbers of lines around a hunk that are shown, and of lines that are folded at least. */
export const MARGIN = 3;
const LEAST = 6;

/** A folded stretch before the hunk of this number; positions are those of its editor. */
export interface Fold {
  hunk: number;
  from: number;
  to: number;
  count: number;
}

/** Return the stretches that are folded at first. */
export function foldsOf(chunks: readonly LineHunk[], text: Text, isOld: boolean): Fold[] {
  if (!chunks.length) return [];
  const folds: Fold[] = [];
  let from = 0;
  for (let hunk = 0; hunk <= chunks.length; hunk += 1) {
    const chunk = chunks[hunk];
    const to = chunk ? (isOld ? chunk.oldFrom : chunk.newFrom) - MARGIN : text.lines;
    const count = to - from;
    if (count >= LEAST) folds.push({ hunk, from: text.line(from + 1).from, to: text.line(to).to, count });
    if (chunk) from = (isOld ? chunk.oldTo : chunk.newTo) + MARGIN;
  }
  return folds;
}

export const unfolded = StateEffect.define<number>();

export const foldField = StateField.define<readonly Fold[]>({
  create: () => [],
  update(folds, transaction) {
    let now = folds;
    if (transaction.docChanged) {
      now = now
        .filter(({ from, to }) => !transaction.changes.touchesRange(from, to))
        .map((fold) => ({
          ...fold,
          from: transaction.changes.mapPos(fold.from, 1),
          to: transaction.changes.mapPos(fold.to, -1),
        }));
    }
    for (const effect of transaction.effects)
      if (effect.is(unfolded)) now = now.filter((fold) => fold.hunk !== effect.value);
    // What was put back from an earlier view, or is looked for, is shown.
    if (transaction.selection && transaction.isUserEvent("select"))
      now = now.filter(
        ({ from, to }) => transaction.newSelection.main.head < from || transaction.newSelection.main.head > to,
      );
    return now.length === folds.length && !transaction.docChanged ? folds : now;
  },
});

export function foldsIn(state: EditorState): readonly Fold[] {
  return state.field(foldField, false) ?? [];
}

class FoldLine extends WidgetType {
  constructor(
    private readonly fold: Fold,
    private readonly words: string,
    private readonly open: (hunk: number) => void,
  ) {
    super();
  }

  override eq(other: FoldLine): boolean {
    return this.fold.hunk === other.fold.hunk && this.words === other.words;
  }

  override get estimatedHeight(): number {
    return 28;
  }

  override toDOM(): HTMLElement {
    const line = document.createElement("div");
    line.className = "cm-fold";
    line.append(foldButton(this.words, () => this.open(this.fold.hunk)));
    return line;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/** Return the button that opens a fold. */
export function foldButton(words: string, open: () => void): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cm-unfold";
  button.textContent = words;
  button.onclick = open;
  return button;
}

/** Fold stretches away, each in a line of its own. */
export function foldLines(folds: readonly Fold[], words: (count: number) => string, open: (hunk: number) => void) {
  return [
    foldField.init(() => folds),
    EditorView.decorations.compute([foldField], (state) =>
      Decoration.set(
        foldsIn(state).map((fold) =>
          Decoration.replace({ widget: new FoldLine(fold, words(fold.count), open), block: true }).range(
            fold.from,
            fold.to,
          ),
        ),
      ),
    ),
  ];
}
