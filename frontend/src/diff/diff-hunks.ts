// The hunks of a diff as units that are taken or kept as they were, while the text around and in them is edited.

import { invertedEffects } from "@codemirror/commands";
import { Change, type DiffConfig, diff } from "@codemirror/merge";
import {
  type ChangeSpec,
  type Extension,
  StateEffect,
  StateField,
  type Text,
  type Transaction,
} from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { comparable, editorHunks, lineHunks, splitLines } from "./line-diff.ts";

/** What the views compare: the lines as the hunks do, then the characters of each hunk. */
export const COMPARISON: DiffConfig = { override: changedCharacters };
const EFFORT = { scanLimit: 500 };

/** A single hunk is answered with the whole change. */
const MINIMUM = 2;

/** A hunk of the proposal. Lines count from 0; `start` and `count` are its place in the text to be written. */
export interface Hunk {
  readonly start: number;
  readonly count: number;
  readonly oldStart: number;
  readonly oldLines: readonly string[];
  readonly newLines: readonly string[];
  readonly isKept: boolean;
  /** Whether an edit went over its border, so that it is a unit no more. */
  readonly isLost: boolean;
}

export interface HunkWords {
  place: (number: number, all: number) => string;
  take: string;
  keep: string;
  kept: string;
}

/** Return the lines of a text from one position to another, and the number of the first one from 0. */
export function linesIn(doc: Text, from: number, to: number): { start: number; lines: string[] } {
  if (from > doc.length) return { start: doc.lines, lines: [] };
  const start = doc.lineAt(from).number - 1;
  const lines: string[] = [];
  const end = to > from ? doc.lineAt(Math.min(to - 1, doc.length)).number : start;
  for (let line = start + 1; line <= end; line += 1) lines.push(doc.line(line).text);
  return { start, lines };
}

/** Return the change that puts other lines in the place of some, whatever stands at the end of the text. */
function replaced(doc: Text, start: number, count: number, lines: readonly string[]): ChangeSpec {
  const end = start + count;
  if (end < doc.lines)
    return {
      from: doc.line(start + 1).from,
      to: doc.line(end + 1).from,
      insert: lines.map((line) => `${line}\n`).join(""),
    };
  if (start > 0) return { from: doc.line(start).to, to: doc.length, insert: lines.map((line) => `\n${line}`).join("") };
  return { from: 0, to: doc.length, insert: lines.join("\n") };
}

/** Return the hunks between two texts, with the numbers that they have in editors and terminals, too. */
export function hunksOf(before: Text, after: Text): Hunk[] {
  const now = after.toString();
  const old = comparable(before.toString(), now);
  const [oldLines, newLines] = [old.split("\n"), now.split("\n")];
  return editorHunks(old, now).map(({ oldFrom, oldTo, newFrom, newTo }) => ({
    start: newFrom,
    count: newTo - newFrom,
    oldStart: oldFrom,
    isKept: false,
    isLost: false,
    oldLines: oldLines.slice(oldFrom, oldTo),
    newLines: newLines.slice(newFrom, newTo),
  }));
}

function changedCharacters(a: string, b: string): Change[] {
  const old = splitLines(a);
  const now = splitLines(b);
  const found: Change[] = [];
  let [oldLine, newLine, oldAt, newAt] = [0, 0, 0, 0];
  for (const { oldFrom, oldTo, newFrom, newTo } of lineHunks(old, now)) {
    for (; oldLine < oldFrom; oldLine += 1) oldAt += (old[oldLine] as string).length;
    for (; newLine < newFrom; newLine += 1) newAt += (now[newLine] as string).length;
    for (const { fromA, toA, fromB, toB } of diff(
      old.slice(oldFrom, oldTo).join(""),
      now.slice(newFrom, newTo).join(""),
      EFFORT,
    )) {
      found.push(new Change(oldAt + fromA, oldAt + toA, newAt + fromB, newAt + toB));
    }
  }
  return found;
}

/** Return the changes from one text to another, by lines. */
export function changesBetween(from: Text, to: Text): ChangeSpec[] {
  return hunksOf(from, to).map((hunk) => replaced(from, hunk.oldStart, hunk.oldLines.length, hunk.newLines));
}

/** Return the line of another text that stands for a line of one; lines count from 1. */
export function sameLine(from: Text, to: Text, line: number): number {
  let shift = 0;
  for (const hunk of hunksOf(from, to)) {
    if (line - 1 < hunk.oldStart) break;
    if (line - 1 < hunk.oldStart + hunk.oldLines.length) return Math.max(1, Math.min(hunk.start + 1, to.lines));
    shift = hunk.start + hunk.newLines.length - hunk.oldStart - hunk.oldLines.length;
  }
  return Math.max(1, Math.min(line + shift, to.lines));
}

const decided = StateEffect.define<{ index: number; isKept: boolean; count: number }>();
export const hunksRestored = StateEffect.define<readonly Hunk[]>();

export const hunkField = StateField.define<readonly Hunk[]>({
  create: () => [],
  update(hunks, transaction) {
    let now = hunks;
    for (const effect of transaction.effects) {
      if (effect.is(hunksRestored)) return effect.value;
      if (effect.is(decided)) now = decide(now, effect.value);
    }
    return now === hunks && transaction.docChanged ? hunks.map((hunk) => moved(hunk, transaction)) : now;
  },
});

function decide(
  hunks: readonly Hunk[],
  { index, isKept, count }: { index: number; isKept: boolean; count: number },
): readonly Hunk[] {
  const delta = count - (hunks[index]?.count ?? 0);
  return hunks.map((hunk, at) =>
    at < index ? hunk : at === index ? { ...hunk, isKept, count } : { ...hunk, start: hunk.start + delta },
  );
}

/** Return a hunk after an edit of the user. */
function moved(hunk: Hunk, transaction: Transaction): Hunk {
  let { start, count, isLost } = hunk;
  const old = transaction.startState.doc;
  const end = hunk.start + hunk.count;
  transaction.changes.iterChanges((fromA, toA, _fromB, _toB, inserted) => {
    const first = old.lineAt(fromA).number - 1;
    const last = old.lineAt(toA).number - 1;
    const delta = inserted.lines - 1 - (last - first);
    if (last < hunk.start) start += delta;
    else if (first >= end) return;
    else if (first >= hunk.start && last < end) count += delta;
    else isLost = true;
  });
  return start === hunk.start && count === hunk.count && isLost === hunk.isLost
    ? hunk
    : { ...hunk, start, count, isLost };
}

/** Take a hunk, or keep it as it was; return whether anything changed. */
export function decideHunk(view: EditorView, index: number, isKept: boolean): boolean {
  const hunk = view.state.field(hunkField)[index];
  if (!hunk || view.state.field(hunkField).length < MINIMUM || hunk.isLost || hunk.isKept === isKept) return false;
  const lines = isKept ? hunk.oldLines : hunk.newLines;
  view.dispatch({
    changes: replaced(view.state.doc, hunk.start, hunk.count, lines),
    effects: decided.of({ index, isKept, count: lines.length }),
  });
  return true;
}

class HunkBar extends WidgetType {
  constructor(
    private readonly index: number,
    private readonly all: number,
    private readonly isKept: boolean | undefined,
    private readonly words: HunkWords,
  ) {
    super();
  }

  override eq(other: HunkBar): boolean {
    return this.index === other.index && this.isKept === other.isKept && this.all === other.all;
  }

  override get estimatedHeight(): number {
    return 36;
  }

  override toDOM(view: EditorView): HTMLElement {
    const bar = document.createElement("div");
    const place = bar.appendChild(document.createElement("span"));
    bar.className = "cm-hunk";
    place.textContent = this.words.place(this.index + 1, this.all);
    if (this.isKept === undefined) return bar;
    const { index } = this;
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", place.textContent);
    bar.appendChild(document.createElement("span")).className = "cm-hunkState";
    for (const [name, text, isKept] of [
      ["keep", this.words.keep, true],
      ["take", this.words.take, false],
    ] as const) {
      const button = bar.appendChild(document.createElement("button"));
      button.type = "button";
      button.name = name;
      button.textContent = text;
      button.onclick = () => decideHunk(view, index, isKept);
    }
    this.#mark(bar);
    return bar;
  }

  override updateDOM(bar: HTMLElement, _view: EditorView, from: HunkBar): boolean {
    if (from.index !== this.index || from.all !== this.all || this.isKept === undefined) return false;
    this.#mark(bar);
    return true;
  }

  #mark(bar: HTMLElement): void {
    for (const button of bar.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String((button.name === "keep") === this.isKept));
    const state = bar.querySelector(".cm-hunkState");
    if (state) state.textContent = this.isKept ? this.words.kept : "";
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/**
 * Return the decoration that shows a bar above a line. Lines count from 0; for a line after the last one the bar ends the text.
 * The bar is attached to the line before, which both sides have: MergeView would count the bar of a changed line twice when it
 * brings both sides to one height.
 */
function barAt(doc: Text, line: number, widget: WidgetType) {
  if (line === 0) return Decoration.widget({ widget, block: true, side: -2 }).range(0);
  return Decoration.widget({ widget, block: true, side: 3 }).range(doc.line(Math.min(line, doc.lines)).to);
}

/** The hunks in the text to be written, with the choice for each. */
export function hunkBars(hunks: readonly Hunk[], words: HunkWords): Extension {
  return [
    hunkField.init(() => hunks),
    EditorView.decorations.compute([hunkField], (state) => {
      const now = state.field(hunkField);
      return Decoration.set(
        now.flatMap((hunk, at) =>
          hunk.isLost || now.length < MINIMUM
            ? []
            : [barAt(state.doc, hunk.start, new HunkBar(at, now.length, hunk.isKept, words))],
        ),
        true,
      );
    }),
    invertedEffects.of((transaction) =>
      transaction.effects.flatMap((effect) => {
        const before = effect.is(decided) ? transaction.startState.field(hunkField)[effect.value.index] : undefined;
        return effect.is(decided) && before
          ? [decided.of({ index: effect.value.index, isKept: before.isKept, count: before.count })]
          : [];
      }),
    ),
  ];
}

/** The same bars in the text as it is, without a choice, so that both sides stay beside each other. */
export function hunkHeads(hunks: readonly Hunk[], words: HunkWords): Extension {
  return EditorView.decorations.compute([], (state) =>
    hunks.length < MINIMUM
      ? Decoration.none
      : Decoration.set(
          hunks.map((hunk, at) => barAt(state.doc, hunk.oldStart, new HunkBar(at, hunks.length, undefined, words))),
          true,
        ),
  );
}
