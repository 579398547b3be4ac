// Two editors beside each other with the neck between them: the text as it is, and the text that will be written. Rows that
// stand for each other have one height; what one side lacks is filled.

import { type EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, type ViewUpdate, WidgetType } from "@codemirror/view";
import { chunkAt, differenceOf, differenceSet, oldLineOf } from "../chunks.ts";
import { placed } from "./diff-comments.ts";
import { lineBlock } from "./line-blocks.ts";
import { mineField } from "./line-marks.ts";
import { Neck, type NeckOptions } from "./neck.ts";

/** Height in px below which two places are level. */
const LEVEL = 0.5;

type Filling = "void" | "same" | "row";

class Filler extends WidgetType {
  constructor(
    readonly height: number,
    readonly filling: Filling,
  ) {
    super();
  }

  override eq(other: Filler): boolean {
    return Math.abs(this.height - other.height) < LEVEL && this.filling === other.filling;
  }

  override get estimatedHeight(): number {
    return this.height;
  }

  override toDOM(): HTMLElement {
    const filler = document.createElement("div");
    this.updateDOM(filler);
    return filler;
  }

  override updateDOM(filler: HTMLElement): boolean {
    filler.className = `cm-filler cm-${this.filling}`;
    filler.style.height = `${this.height}px`;
    return true;
  }

  override ignoreEvent(): boolean {
    return false;
  }
}

const fillersSet = StateEffect.define<DecorationSet>();
const fillerField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(fillers, transaction) {
    for (const effect of transaction.effects) if (effect.is(fillersSet)) return effect.value;
    return fillers.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** One side while it is brought level: where its lines would be without fillers, and the fillers that it gets. */
class Side {
  #known: { from: number; height: number }[] = [];
  #at = 0;
  #without = 0;
  #added = 0;
  #found: { at: number; side: number; widget: Filler }[] = [];

  constructor(readonly view: EditorView) {
    for (const cursor = view.state.field(fillerField).iter(); cursor.value; cursor.next())
      this.#known.push({ from: cursor.from, height: (cursor.value.spec as { widget: Filler }).widget.height });
  }

  /** Return where a line is to begin by now; lines are asked for in order. */
  top(line: number): number {
    const { from } = this.view.state.doc.line(line + 1);
    for (; (this.#known[this.#at]?.from ?? Infinity) <= from; this.#at += 1)
      this.#without += this.#known[this.#at]?.height ?? 0;
    return lineBlock(this.view, line).top - this.#without + this.#added;
  }

  get end(): number {
    const all = this.#known.reduce((sum, { height }) => sum + height, 0);
    return this.view.contentHeight - all + this.#added;
  }

  fill(line: number, height: number, filling: Filling): void {
    const { doc } = this.view.state;
    const isEnd = line >= doc.lines;
    this.#added += height;
    this.#found.push({
      at: isEnd ? doc.length : doc.line(line + 1).from,
      side: isEnd ? 9 : -9,
      widget: new Filler(height, filling),
    });
  }

  get #isSame(): boolean {
    const cursor = this.view.state.field(fillerField).iter();
    for (const { at, widget } of this.#found) {
      if (cursor.value === null || cursor.from !== at) return false;
      if (!(cursor.value.spec as { widget: Filler }).widget.eq(widget)) return false;
      cursor.next();
    }
    return cursor.value === null;
  }

  apply(): void {
    if (this.#isSame) return;
    const fillers = this.#found.map(({ at, side, widget }) =>
      Decoration.widget({ widget, block: true, side }).range(at),
    );
    this.view.dispatch({ effects: fillersSet.of(Decoration.set(fillers)) });
  }
}

/** Lines, from 0, that are to be level, and what fills the side that is higher up. */
interface Anchor {
  left: number;
  right: number;
  filling: Filling;
}

function anchorsOf(left: EditorView, right: EditorView): Anchor[] {
  const difference = differenceOf(right.state);
  if (!difference) return [];
  const { chunks } = difference;
  const anchors: Anchor[] = [];
  const isNear = (view: EditorView, line: number): boolean => {
    const { from } = view.state.doc.line(Math.min(line + 1, view.state.doc.lines));
    return from >= view.viewport.from && from <= view.viewport.to;
  };
  for (const { oldFrom, oldTo, newFrom, newTo } of chunks) {
    const [oldCount, newCount] = [oldTo - oldFrom, newTo - newFrom];
    for (let at = 0; at < Math.min(oldCount, newCount); at += 1)
      if (at === 0 || isNear(left, oldFrom + at) || isNear(right, newFrom + at))
        anchors.push({ left: oldFrom + at, right: newFrom + at, filling: at === 0 ? "same" : "row" });
    anchors.push({ left: oldTo, right: newTo, filling: oldCount === newCount ? "row" : "void" });
  }
  // What follows a comment.
  for (const position of commented(right.state)) {
    const line = right.state.doc.lineAt(position).number;
    if (line < right.state.doc.lines && !chunkAt(chunks, line, false).isIn)
      anchors.push({ left: oldLineOf(chunks, line), right: line, filling: "void" });
  }
  for (const position of commented(left.state)) {
    const line = left.state.doc.lineAt(position).number;
    const { chunk, isIn } = chunkAt(chunks, line, true);
    if (line < left.state.doc.lines && !isIn)
      anchors.push({ left: line, right: chunk ? line - chunk.oldTo + chunk.newTo : line, filling: "void" });
  }
  const isIn = (view: EditorView, line: number): boolean => line < view.state.doc.lines;
  return anchors
    .filter((anchor) => isIn(left, anchor.left) && isIn(right, anchor.right))
    .sort((one, other) => one.right - other.right || one.left - other.left);
}

function commented(state: EditorState): number[] {
  return (state.field(placed, false) ?? []).map(({ position }) => Math.min(position, state.doc.length));
}

/** What stands above both sides, and how many lines of the right one are the user's. */
export interface SideWords {
  before: string;
  after: string;
  mine: (count: number) => string;
}

export interface SidesOptions {
  words: SideWords;
  root: ShadowRoot;
  parent: HTMLElement;
  old: { doc: EditorState["doc"]; extensions: Extension };
  now: { doc: EditorState["doc"]; extensions: Extension };
  neck: NeckOptions;
}

/** Show two editors beside each other. */
export class SideBySide {
  readonly left: EditorView;
  readonly right: EditorView;
  #neck: Neck;
  #dom: HTMLElement;
  #yours: HTMLElement;
  #mine: (count: number) => string;
  #frame = 0;
  #isLevelling = false;
  #rounds = 0;

  constructor({ root, parent, old, now, neck, words }: SidesOptions) {
    const box = (name: string, to: HTMLElement): HTMLElement => {
      const made = to.appendChild(document.createElement("div"));
      made.className = name;
      return made;
    };
    this.#dom = box("sides cm-mergeView", parent);
    box("cap", this.#dom).textContent = words.before;
    box("cap c", this.#dom);
    const caption = box("cap", this.#dom);
    caption.textContent = words.after;
    this.#yours = box("yours", caption);
    this.#mine = words.mine;
    const places = [box("side", this.#dom), box("neck", this.#dom), box("side", this.#dom)] as const;
    const watch = EditorView.updateListener.of((update) => this.#changed(update));
    const view = (name: string, to: HTMLElement, { doc, extensions }: SidesOptions["old"]): EditorView =>
      new EditorView({
        doc,
        root,
        parent: to,
        extensions: [extensions, fillerField, watch, EditorView.editorAttributes.of({ class: `cm-merge-${name}` })],
      });
    this.left = view("a", places[0], old);
    this.right = view("b", places[2], now);
    this.#tell();
    this.#neck = new Neck(places[1], this.left, this.right, neck);
    this.#soon();
  }

  #tell(): void {
    const difference = differenceOf(this.right.state);
    if (difference && differenceOf(this.left.state) !== difference)
      this.left.dispatch({ effects: differenceSet.of(difference) });
  }

  #changed(update: ViewUpdate): void {
    if (!this.right) return;
    if (update.docChanged) {
      this.#tell();
      const { size } = this.right.state.field(mineField);
      this.#yours.textContent = size ? this.#mine(size) : "";
    }
    if (update.geometryChanged || update.viewportChanged || update.docChanged || update.transactions.length) {
      if (!this.#isLevelling) this.#rounds = 0;
      this.#soon();
    }
  }

  #soon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => {
      this.#level();
      this.#neck.draw();
    });
  }

  /** Bring both sides level. Heights that are measured later want it anew. */
  #level(): void {
    if (this.#rounds > 20) return;
    this.#rounds += 1;
    const left = new Side(this.left);
    const right = new Side(this.right);
    for (const anchor of anchorsOf(this.left, this.right)) {
      const difference = left.top(anchor.left) - right.top(anchor.right);
      if (difference < -LEVEL) left.fill(anchor.left, -difference, anchor.filling);
      else if (difference > LEVEL) right.fill(anchor.right, difference, anchor.filling);
    }
    const difference = left.end - right.end;
    const last = differenceOf(this.right.state)?.chunks.at(-1);
    const isVoid =
      last !== undefined && (last.oldTo >= this.left.state.doc.lines || last.newTo >= this.right.state.doc.lines);
    const filling = isVoid ? "void" : "same";
    if (difference < -LEVEL) left.fill(Infinity, -difference, filling);
    else if (difference > LEVEL) right.fill(Infinity, difference, filling);
    this.#isLevelling = true;
    left.apply();
    right.apply();
    this.#isLevelling = false;
  }

  destroy(): void {
    cancelAnimationFrame(this.#frame);
    this.left.destroy();
    this.right.destroy();
    this.#dom.remove();
  }
}
