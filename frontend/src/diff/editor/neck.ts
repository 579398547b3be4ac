// The neck between both sides of a diff. A ribbon for each hunk: open while nothing is decided, joined when it is taken, gone
// when the old text is kept.

import type { EditorView } from "@codemirror/view";
import { type Hunk, type HunkWords, MINIMUM, choiceOf, hunkField } from "./diff-hunks.ts";
import { foldsIn } from "./folds.ts";
import { choiceButtons, markChoice } from "./hunk-heads.ts";
import { lineBlock } from "./line-blocks.ts";

/** Height in px below which the buttons stand beside each other. */
const TIGHT = 66;

export interface NeckOptions {
  words: HunkWords;
  /** Whether hunks can be chosen. */
  isOpen: boolean;
}

/** Where the texts of both sides begin, in px from the top of the neck. */
interface Offsets {
  left: number;
  right: number;
}

export class Neck {
  #ribbons = new Map<number, HTMLElement>();
  #folds: HTMLElement[] = [];

  constructor(
    private readonly dom: HTMLElement,
    private readonly left: EditorView,
    private readonly right: EditorView,
    private readonly options: NeckOptions,
  ) {}

  /** Draw it anew where something has moved. */
  draw(): void {
    const all = this.right.state.field(hunkField);
    const live = new Set<number>();
    // What is measured is measured before anything is moved.
    const zero = this.dom.getBoundingClientRect().top;
    const offsets: Offsets = { left: this.left.documentTop - zero, right: this.right.documentTop - zero };
    const places: [number, Hunk, [number, number]][] = [];
    all.forEach((hunk, at) => {
      if (!hunk.isLost && this.#isNear(hunk)) places.push([at, hunk, this.#place(hunk, offsets)]);
    });
    for (const [at, hunk, [top, bottom]] of places) {
      live.add(at);
      const ribbon = this.#ribbon(at, all.length);
      place(ribbon, top, bottom - top);
      ribbon.classList.toggle("tight", bottom - top < TIGHT);
      markChoice(ribbon, choiceOf(hunk));
    }
    for (const [at, ribbon] of this.#ribbons) {
      if (live.has(at)) continue;
      ribbon.remove();
      this.#ribbons.delete(at);
    }
    this.#drawFolds(offsets.right);
  }

  /** Whether a hunk may be on the screen, or near it. */
  #isNear({ start, count, oldStart, oldLines }: Hunk): boolean {
    const isIn = (view: EditorView, from: number, size: number): boolean => {
      const { doc } = view.state;
      const { viewport } = view;
      return (
        doc.line(Math.min(from + 1, doc.lines)).from <= viewport.to &&
        doc.line(Math.min(from + Math.max(1, size), doc.lines)).to >= viewport.from
      );
    };
    return isIn(this.right, start, count) || isIn(this.left, oldStart, oldLines.length);
  }

  #ribbon(at: number, all: number): HTMLElement {
    const known = this.#ribbons.get(at);
    if (known) return known;
    const ribbon = this.dom.appendChild(document.createElement("div"));
    ribbon.className = "nk";
    this.#ribbons.set(at, ribbon);
    if (!this.options.isOpen || all < MINIMUM) return ribbon;
    const name = this.options.words.place(at + 1, all);
    ribbon.setAttribute("role", "group");
    ribbon.setAttribute("aria-label", name);
    const buttons = ribbon.appendChild(document.createElement("div"));
    buttons.className = "nb";
    buttons.append(...choiceButtons(this.right, at, this.options.words, name));
    return ribbon;
  }

  /** Return where a hunk begins and ends, in px from the top of the neck. */
  #place({ start, count, oldStart, oldLines }: Hunk, offsets: Offsets): [number, number] {
    const edges = (view: EditorView, offset: number, from: number, size: number): [number, number] => {
      const { doc } = view.state;
      if (size === 0) {
        const at =
          from < doc.lines ? lineBlock(view, from).top : view.contentHeight - (view.documentPadding.bottom || 0);
        return [offset + at, offset + at];
      }
      const end = Math.min(from + size, doc.lines);
      // Also what is below the last line: its comment, and what fills the side.
      const bottom = end < doc.lines ? lineBlock(view, end).top : view.lineBlockAt(doc.length).bottom;
      return [offset + lineBlock(view, from).top, offset + bottom];
    };
    const [top, bottom] = edges(this.right, offsets.right, start, count);
    const [oldTop, oldBottom] = edges(this.left, offsets.left, oldStart, oldLines.length);
    return [Math.min(count ? top : oldTop, oldLines.length ? oldTop : top), Math.max(bottom, oldBottom)];
  }

  #drawFolds(offset: number): void {
    const { viewport } = this.right;
    const folds = foldsIn(this.right.state).filter(({ from, to }) => from <= viewport.to && to >= viewport.from);
    while (this.#folds.length > folds.length) this.#folds.pop()?.remove();
    folds.forEach((fold, at) => {
      const block = this.right.lineBlockAt(fold.from);
      let line = this.#folds[at];
      if (!line) {
        line = document.createElement("div");
        line.className = "nf";
        this.dom.prepend(line);
        this.#folds.push(line);
      }
      place(line, offset + block.top, block.height);
    });
  }
}

function place(element: HTMLElement, top: number, height: number): void {
  const [from, size] = [`${Math.round(top * 10) / 10}px`, `${Math.round(height * 10) / 10}px`];
  if (element.style.top !== from) element.style.top = from;
  if (element.style.height !== size) element.style.height = size;
}
