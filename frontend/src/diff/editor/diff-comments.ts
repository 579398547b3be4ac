// Comments on lines, shown below their lines in an editor.

import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { isComposing, isEnter } from "../../frame/keys.ts";
import type { LineComment } from "./line-comments.ts";

export interface CommentWords {
  title: (comment: LineComment) => string;
  remove: string;
}

export interface CommentEvents {
  /** The text of a comment changed; undefined removes it. */
  onComment: (id: number, text: string | undefined) => void;
  /** The user has done with the field. */
  onLeave: () => void;
}

interface Placed {
  comment: LineComment;
  position: number;
  isAbove: boolean;
}

/** The comments of an editor; `lineOf` returns the line, from 1, of a new one. */
export const commentsSet = StateEffect.define<{
  comments: readonly LineComment[];
  lineOf: (comment: LineComment) => { line: number; isAbove: boolean };
}>();

export const placed = StateField.define<readonly Placed[]>({
  create: () => [],
  update(now, transaction) {
    let found = transaction.docChanged
      ? now.map((one) => ({ ...one, position: transaction.changes.mapPos(one.position, one.isAbove ? -1 : 1) }))
      : now;
    for (const effect of transaction.effects) {
      if (!effect.is(commentsSet)) continue;
      const known = new Map(found.map((one) => [one.comment.id, one]));
      const { doc } = transaction.state;
      found = effect.value.comments.map((comment) => {
        const before = known.get(comment.id);
        if (before) return { ...before, comment };
        const { line, isAbove } = effect.value.lineOf(comment);
        return { comment, isAbove, position: doc.line(Math.max(1, Math.min(line, doc.lines))).from };
      });
    }
    return found;
  },
});

class CommentField extends WidgetType {
  constructor(
    private readonly comment: LineComment,
    /** Number of the line as it is shown. */
    private readonly line: number,
    private readonly words: CommentWords,
    private readonly events: CommentEvents,
  ) {
    super();
  }

  /** What is typed is in the field already. */
  override eq(other: CommentField): boolean {
    return this.comment.id === other.comment.id && this.line === other.line;
  }

  override updateDOM(outer: HTMLElement, _view: EditorView, from: CommentField): boolean {
    if (from.comment.id !== this.comment.id) return false;
    const title = this.#title;
    outer.querySelector("span")?.replaceChildren(title);
    outer.querySelector("textarea")?.setAttribute("aria-label", title);
    return true;
  }

  get #title(): string {
    return this.words.title({ ...this.comment, line: this.line });
  }

  override get estimatedHeight(): number {
    return 96;
  }

  override toDOM(view: EditorView): HTMLElement {
    const { id } = this.comment;
    const { onComment, onLeave } = this.events;
    const outer = document.createElement("div");
    const box = outer.appendChild(document.createElement("div"));
    const head = box.appendChild(document.createElement("div"));
    const title = head.appendChild(document.createElement("span"));
    const remove = head.appendChild(document.createElement("button"));
    const field = box.appendChild(document.createElement("textarea"));
    outer.className = "cm-comment";
    outer.dataset.id = String(id);
    title.textContent = this.#title;
    remove.type = "button";
    remove.textContent = this.words.remove;
    remove.onclick = () => {
      onComment(id, undefined);
      onLeave();
    };
    field.value = this.comment.text;
    field.rows = 2;
    field.maxLength = 4000;
    field.dir = "auto";
    field.setAttribute("aria-label", title.textContent);
    field.oninput = () => {
      onComment(id, field.value);
      view.requestMeasure();
    };
    field.onkeydown = (event) => {
      if (isComposing(event) || !(event.key === "Escape" || (isEnter(event) && !event.shiftKey))) return;
      event.preventDefault();
      event.stopPropagation();
      onLeave();
    };
    // Not at once: the field also loses the focus while an update of the editor removes it.
    field.onblur = () => {
      setTimeout(() => {
        if (box.isConnected && !field.value.trim()) onComment(id, undefined);
      });
    };
    return outer;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

export function lineComments(words: CommentWords, events: CommentEvents): Extension {
  return [
    placed,
    EditorView.decorations.compute([placed], (state) =>
      Decoration.set(
        state.field(placed).map(({ comment, position, isAbove }) => {
          const line = state.doc.lineAt(Math.min(position, state.doc.length));
          // A line as it was has the number of its own text.
          const shown = comment.side === "old" ? comment.line : line.number;
          const widget = new CommentField(comment, shown, words, events);
          return Decoration.widget({ widget, block: true, side: isAbove ? 0 : 2 }).range(isAbove ? line.from : line.to);
        }),
        true,
      ),
    ),
  ];
}
