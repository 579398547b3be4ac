// How the lines of a change look in an editor: their kind, the words of them that differ, their numbers and signs.

import { type Extension, Facet, type Range, StateField, type Text } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  GutterMarker,
  ViewPlugin,
  type ViewUpdate,
  gutter,
  gutters,
} from "@codemirror/view";
import { type Difference, chunkAt, differenceOf, marksOf, oldLineOf } from "../chunks.ts";
import { hunkField, hunksOf } from "./diff-hunks.ts";
import type { LineNumbers } from "../long-rows.ts";

/** Kind of a line: alike, removed, added, typed by the user, or kept as it was. */
export type LineKind = "same" | "removed" | "added" | "mine" | "kept";

export interface LineWords {
  added: string;
  removed: string;
  mine: string;
  kept: string;
}

/** Which lines an editor shows: those of the old text, those of the new one, or of both. */
export interface LineLook {
  shows: "old" | "new" | "both";
  words: LineWords;
  numbers: LineNumbers | undefined;
}

export const SIGNS: Record<LineKind, string> = { same: "", removed: "\u2212", added: "+", mine: "\u270e", kept: "" };

/** The text as it was proposed: what differs from it is the user's. */
export const proposedText = Facet.define<Text, Text | undefined>({ combine: (texts) => texts[0] });

/** The lines that the user has typed, from 0. */
export const mineField = StateField.define<ReadonlySet<number>>({
  create: () => new Set(),
  update(mine, transaction) {
    if (!transaction.docChanged) return mine;
    const proposed = transaction.state.facet(proposedText);
    const { newDoc } = transaction;
    if (!proposed || newDoc.eq(proposed)) return new Set();
    const kept = transaction.state.field(hunkField, false)?.filter((hunk) => hunk.isKept && !hunk.isLost) ?? [];
    const lines = new Set<number>();
    for (const { start, count } of hunksOf(proposed, newDoc))
      for (let line = start; line < start + count; line += 1)
        if (!kept.some((hunk) => hunk.start <= line && line < hunk.start + hunk.count)) lines.add(line);
    return lines;
  },
});

function kindOf(view: EditorView, line: number, { shows }: LineLook, difference: Difference | undefined): LineKind {
  const { state } = view;
  if (shows === "old")
    return difference && chunkAt(difference.chunks, line, true).isIn && difference.old.length ? "removed" : "same";
  if (state.field(mineField, false)?.has(line)) return "mine";
  if (difference && chunkAt(difference.chunks, line, false).isIn) return "added";
  const hunks = state.field(hunkField, false) ?? [];
  return hunks.some((hunk) => hunk.isKept && !hunk.isLost && hunk.start <= line && line < hunk.start + hunk.count)
    ? "kept"
    : "same";
}

const WORD = Decoration.mark({ class: "cm-changedText" });
/** Indentations in characters that have a class; deeper ones hang as these do. */
export const DEEPEST = 40;
const TAB = 4;

/** Return the class that lets a line hang by its own indentation and two more. */
export function hangOf(text: string): string {
  let depth = 0;
  for (const character of text.slice(0, DEEPEST)) {
    if (character === "\t") depth += TAB - (depth % TAB);
    else if (character === " ") depth += 1;
    else break;
  }
  return `cm-in${Math.min(depth, DEEPEST)}`;
}

function decorationsOf(view: EditorView, look: LineLook): DecorationSet {
  const found: Range<Decoration>[] = [];
  const difference = differenceOf(view.state);
  const { doc } = view.state;
  const isOld = look.shows === "old";
  for (const { from, to } of view.visibleRanges) {
    for (let line = doc.lineAt(from); ; line = doc.line(line.number + 1)) {
      const at = line.number - 1;
      const kind = kindOf(view, at, look, difference);
      const said = kind === "same" || kind === "kept" ? "" : look.words[kind];
      const isChanged = kind === "added" || kind === "removed" || kind === "mine";
      const classes = [hangOf(line.text), kind === "same" ? "" : `cm-${kind}`, isChanged ? "cm-changedLine" : ""];
      const isFirst = kind === "kept" && (at === 0 || kindOf(view, at - 1, look, difference) !== "kept");
      found.push(
        Decoration.line({
          class: classes.filter(Boolean).join(" "),
          attributes: {
            ...(said ? { "data-said": `${said} ` } : {}),
            ...(isFirst && look.shows === "new" ? { "data-end": look.words.kept } : {}),
          },
        }).range(line.from),
      );
      const { chunk, isIn } = chunkAt(difference?.chunks ?? [], at, isOld);
      if (difference && chunk && isIn && isChanged) {
        const marks = marksOf(difference, chunk);
        const own = isOld ? marks.old[at - chunk.oldFrom] : marks.now[at - chunk.newFrom];
        for (const [start, end] of own ?? [])
          if (start < end && line.from + end <= line.to) found.push(WORD.range(line.from + start, line.from + end));
      }
      if (line.to >= to || line.number >= doc.lines) break;
    }
  }
  return Decoration.set(found, true);
}

function isOther(update: ViewUpdate): boolean {
  return (
    update.docChanged ||
    differenceOf(update.startState) !== differenceOf(update.state) ||
    update.startState.field(hunkField, false) !== update.state.field(hunkField, false)
  );
}

class LineMarker extends GutterMarker {
  override elementClass: string;

  constructor(
    private readonly text: string,
    private readonly kind: LineKind,
  ) {
    super();
    this.elementClass = kind === "same" ? "" : `cm-g-${kind}`;
  }

  override eq(other: LineMarker): boolean {
    return this.text === other.text && this.kind === other.kind;
  }

  override toDOM(): Node {
    return document.createTextNode(this.text);
  }
}

/** Return the extensions that show lines so. */
export function lineMarks(look: LineLook): Extension {
  const isOldSide = look.shows === "old";
  const column = (name: string, textOf: (view: EditorView, line: number, kind: LineKind) => string): Extension =>
    gutter({
      class: `cm-${name}`,
      lineMarker(view, block) {
        const line = view.state.doc.lineAt(block.from).number - 1;
        const kind = kindOf(view, line, look, differenceOf(view.state));
        return new LineMarker(textOf(view, line, kind), kind);
      },
      lineMarkerChange: isOther,
    });
  const numberOf = (line: number, numbers: readonly number[] | undefined): string =>
    numbers ? String(numbers[line] || "") : String(line + 1);
  const own = column("lineNumbers", (_view, line) =>
    numberOf(line, isOldSide ? look.numbers?.before : look.numbers?.after),
  );
  const before = column("oldNumbers", (view, line, kind) => {
    const difference = differenceOf(view.state);
    if (!difference || kind === "added" || kind === "mine") return "";
    return numberOf(oldLineOf(difference.chunks, line), look.numbers?.before);
  });
  return [
    gutters({ fixed: false }),
    look.shows === "both" ? before : [],
    own,
    column("signs", (_view, _line, kind) => SIGNS[kind]),
    ViewPlugin.fromClass(
      class {
        decorations: DecorationSet;

        constructor(view: EditorView) {
          this.decorations = decorationsOf(view, look);
        }

        update(update: ViewUpdate): void {
          if (update.viewportChanged || update.geometryChanged || isOther(update))
            this.decorations = decorationsOf(update.view, look);
        }
      },
      { decorations: (plugin) => plugin.decorations },
    ),
    headingsOf(isOldSide ? look.numbers?.before : look.numbers?.after),
  ];
}

const HEADING = Decoration.line({ class: "cm-heading" });

/** Return the lines of a part of a file that are headings between its parts. */
function headingsOf(numbers: readonly number[] | undefined): Extension {
  if (!numbers) return [];
  return EditorView.decorations.compute([], ({ doc }) =>
    Decoration.set(
      numbers.slice(0, doc.lines).flatMap((number, at) => (number === 0 ? [HEADING.range(doc.line(at + 1).from)] : [])),
    ),
  );
}
