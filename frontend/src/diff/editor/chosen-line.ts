// The line of a diff that the user has chosen: hunks are decided and lines commented on where it is.

import { StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView } from "@codemirror/view";
import { type Choice, type Hunk, decideHunk, hunkField, sameLine } from "./diff-hunks.ts";
import type { Place } from "./line-comments.ts";

const chosenSet = StateEffect.define<boolean>();
/** Whether the line of the cursor is the one that the user has chosen. */
export const chosenField = StateField.define<boolean>({
  create: () => false,
  update(isChosen, transaction) {
    for (const effect of transaction.effects) if (effect.is(chosenSet)) return effect.value;
    return isChosen || transaction.isUserEvent("select");
  },
  provide: (field) =>
    EditorView.decorations.compute([field, "selection", "doc"], (state) =>
      state.field(field)
        ? Decoration.set([
            Decoration.line({ class: "cm-chosenLine" }).range(state.doc.lineAt(state.selection.main.head).from),
          ])
        : Decoration.none,
    ),
});

/** Not a line of the diff, though they are in it. */
const OTHERS = "button, .cm-comment, .cm-hunk, .cm-fold, .cm-filler, .cm-switch, .stick, .neck";

export interface ChosenLineOptions {
  parent: HTMLElement;
  /** The editor of the text to be written, and that of the old text if it has one. */
  right: EditorView;
  left: EditorView | undefined;
  proposed: Text;
  /** Whether something can be chosen at all. */
  isOpen: boolean;
  onChoose: (place: Place) => void;
}

export class ChosenLine {
  /** The chosen line of the old text where it has no editor. */
  #deleted: { line: number; element: Element } | undefined;
  #active: EditorView | undefined;

  constructor(private readonly options: ChosenLineOptions) {
    options.parent.addEventListener("click", this.#clicked);
  }

  destroy(): void {
    this.options.parent.removeEventListener("click", this.#clicked);
  }

  isIn(view: EditorView): boolean {
    return this.#active === view;
  }

  /** Make the line of the cursor in an editor the chosen one. */
  choose(view: EditorView): void {
    const { left, right, isOpen, onChoose } = this.options;
    if (!isOpen) return;
    this.#forgetDeleted();
    this.#active = view;
    for (const other of left ? [left, right] : [right])
      if (other.state.field(chosenField) !== (other === view))
        other.dispatch({ effects: chosenSet.of(other === view) });
    onChoose(this.#placeIn(view));
  }

  /** Go to the next hunk, or with -1 to the one before. */
  goHunk(direction: 1 | -1): void {
    const { right } = this.options;
    const isIn = this.isIn(right);
    const line = isIn ? right.state.doc.lineAt(right.state.selection.main.head).number - 1 : -1;
    const live = right.state.field(hunkField).filter((hunk) => !hunk.isLost);
    const next = direction > 0 ? live.find((hunk) => hunk.start > line) : live.findLast((hunk) => hunk.start < line);
    const hunk = next ?? (isIn ? undefined : live[0]);
    if (!hunk) return;
    const anchor = beginningOf(right, hunk);
    right.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    right.focus();
    this.choose(right);
  }

  /** Decide about the hunk of the chosen line; without one go to the first. */
  decide(choice: Choice): void {
    const at = this.#hunk();
    if (at < 0) this.goHunk(1);
    else if (this.options.isOpen) decideHunk(this.options.right, at, choice);
  }

  /** Return the line to comment on, on the old side if that is wanted and there is one. */
  place(isOld: boolean): Place {
    const { left, right, proposed } = this.options;
    if (this.#deleted) return { side: "old", line: this.#deleted.line };
    const hunk = right.state.field(hunkField)[Math.max(0, this.#hunk())];
    if (isOld && hunk?.oldLines.length && (!left || !this.isIn(left))) return { side: "old", line: hunk.oldStart + 1 };
    if (this.#active) return this.#placeIn(this.#active);
    const { doc } = right.state;
    const line = hunk && Math.min(sameLine(doc, proposed, Math.min(hunk.start + 1, doc.lines)), proposed.lines);
    return { side: "new", line: line ?? 1 };
  }

  #placeIn(view: EditorView): Place {
    const { left, right, proposed } = this.options;
    const { number } = view.state.doc.lineAt(view.state.selection.main.head);
    if (view === left) return { side: "old", line: number };
    // What is kept as it was is not in the proposal.
    const kept = right.state
      .field(hunkField)
      .find(({ start, count, isKept, isLost }) => isKept && !isLost && start < number && number <= start + count);
    return kept
      ? { side: "old", line: kept.oldStart + number - kept.start }
      : { side: "new", line: sameLine(right.state.doc, proposed, number), shown: number };
  }

  /** Return the index of the hunk of the chosen line; -1 if it is in none. */
  #hunk(): number {
    const { right } = this.options;
    if (!this.isIn(right)) return -1;
    const line = right.state.doc.lineAt(right.state.selection.main.head).number - 1;
    return right.state
      .field(hunkField)
      .findIndex((hunk) => !hunk.isLost && hunk.start <= line && line < hunk.start + Math.max(1, hunk.count));
  }

  #forgetDeleted(): void {
    this.#deleted?.element.classList.remove("cm-chosenLine");
    this.#deleted = undefined;
  }

  /** Choose the line at a place of the window; return whether there is one. */
  chooseAt = (target: Element, x: number, y: number): boolean => {
    const { left, right, isOpen, onChoose } = this.options;
    if (!isOpen || target.closest(OTHERS)) return false;
    const element = target.closest<HTMLElement>(".cm-deletedLine");
    if (element) {
      this.#forgetDeleted();
      this.#deleted = { line: Number(element.dataset.line), element };
      element.classList.add("cm-chosenLine");
      right.dispatch({ effects: chosenSet.of(false) });
      onChoose({ side: "old", line: this.#deleted.line });
      return true;
    }
    const view = [left, right].find((one) => one?.dom.contains(target));
    if (!view) return false;
    const position = view.posAtCoords({ x, y }, false);
    const { main } = view.state.selection;
    // Where text can be selected or typed the cursor is in its place already.
    if (main.empty && view.state.doc.lineAt(main.head).number !== view.state.doc.lineAt(position).number)
      view.dispatch({ selection: { anchor: position } });
    this.choose(view);
    return true;
  };

  #clicked = ({ target, clientX, clientY }: MouseEvent): void => {
    this.chooseAt(target as Element, clientX, clientY);
  };
}

/** Return the position at which a hunk begins. */
export function beginningOf({ state: { doc } }: EditorView, hunk: Hunk): number {
  return doc.line(Math.min(hunk.start + 1, doc.lines)).from;
}
