// The removed lines of a change in one column: above the lines that stand in their place, with their own numbers.

import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";
import { type Difference, differenceField, linesOf, marksOf } from "../chunks.ts";
import { type Span, exactPieces } from "../code-spans.ts";
import type { LineHunk } from "../line-diff.ts";
import { SIGNS, hangOf } from "./line-marks.ts";

/** Number of removed lines that are laid out together. */
const BLOCK = 50;

export const coloursSet = StateEffect.define<readonly (readonly Span[])[]>();
/** The coloured parts of each line of the old text. */
const coloursField = StateField.define<readonly (readonly Span[])[]>({
  create: () => [],
  update(colours, transaction) {
    for (const effect of transaction.effects) if (effect.is(coloursSet)) return effect.value;
    return colours;
  },
});

class RemovedLines extends WidgetType {
  private readonly marks: unknown;

  constructor(
    private readonly difference: Difference,
    private readonly chunk: LineHunk,
    private readonly colours: readonly (readonly Span[])[],
    private readonly numbers: readonly number[] | undefined,
    private readonly said: string,
  ) {
    super();
    this.marks = marksOf(difference, chunk);
  }

  override eq(other: RemovedLines): boolean {
    return (
      this.chunk.oldFrom === other.chunk.oldFrom &&
      this.chunk.oldTo === other.chunk.oldTo &&
      this.marks === other.marks &&
      this.colours === other.colours
    );
  }

  override get estimatedHeight(): number {
    return 20 * (this.chunk.oldTo - this.chunk.oldFrom);
  }

  override toDOM(): HTMLElement {
    const box = document.createElement("div");
    box.className = "cm-deletedChunk";
    const { oldFrom, oldTo } = this.chunk;
    const { old } = marksOf(this.difference, this.chunk);
    let block = box;
    linesOf(this.difference.old, oldFrom, oldTo).forEach((text, at) => {
      const line = oldFrom + at;
      // Blocks that are not near the screen are not laid out.
      if (at % BLOCK === 0) {
        block = box.appendChild(document.createElement("div"));
        block.className = "cm-deletedBlock";
      }
      const row = block.appendChild(ROW.cloneNode(true) as HTMLElement);
      const [number, , , shown] = row.children as unknown as [HTMLElement, HTMLElement, HTMLElement, HTMLElement];
      row.dataset.line = String(line + 1);
      number.textContent = this.numbers ? String(this.numbers[line] || "") : String(line + 1);
      shown.classList.add(hangOf(text));
      shown.append(part("cm-said", `${this.said} `), ...pieceNodes(text, this.colours[line] ?? [], old[at] ?? []));
    });
    return box;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

function part(name: string, text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  if (name === "sign") element.setAttribute("aria-hidden", "true");
  return element;
}

/** A row without its text. */
const ROW = document.createElement("div");
ROW.className = "cm-deletedLine";
ROW.append(part("number", ""), part("number", ""), part("sign", SIGNS.removed), part("text", ""));

/** Return the nodes of a line: its coloured parts, and within a mark what differs. */
export function pieceNodes(
  text: string,
  spans: readonly Span[],
  marks: readonly (readonly [number, number])[],
): (Node | string)[] {
  const nodes: (Node | string)[] = [];
  for (const { text: words, name, isMarked } of exactPieces(text, spans, marks)) {
    if (!words) continue;
    const coloured = name ? part(name, words) : words;
    if (!isMarked) {
      nodes.push(coloured);
      continue;
    }
    const mark = document.createElement("mark");
    mark.append(coloured);
    nodes.push(mark);
  }
  return nodes;
}

/** Show the removed lines; `said` is read before each. */
export function removedLines(numbers: readonly number[] | undefined, said: string): Extension {
  return [
    coloursField,
    EditorView.decorations.compute([differenceField, coloursField], (state): DecorationSet => {
      const difference = state.field(differenceField);
      // An empty text has one empty line, which nobody removed.
      if (!difference?.old.length) return Decoration.none;
      const { doc } = state;
      return Decoration.set(
        difference.chunks
          .filter((chunk) => chunk.oldFrom < Math.min(chunk.oldTo, difference.old.lines))
          .map((chunk) => {
            const widget = new RemovedLines(difference, chunk, state.field(coloursField), numbers, said);
            return chunk.newFrom < doc.lines
              ? Decoration.widget({ widget, block: true, side: -1 }).range(doc.line(chunk.newFrom + 1).from)
              : Decoration.widget({ widget, block: true, side: 1 }).range(doc.length);
          }),
      );
    }),
  ];
}
