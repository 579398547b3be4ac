// Which changed lines were on the screen in an editor whose text the user may change meanwhile.

import { MapMode, RangeSet, RangeValue, StateEffect, StateField, type Text, Transaction } from "@codemirror/state";
import { type BlockInfo, BlockType, type EditorView } from "@codemirror/view";
import { differenceOf } from "../chunks.ts";
import type { LineHunk } from "../line-diff.ts";
import { parentOf, scrollerOf, windowOf } from "../on-screen.ts";
import type { Hunk } from "./diff-hunks.ts";
import { type Stretch, firstUnseen, isWhole, slackOf, withStretch } from "../seen-parts.ts";

/** A line that was on the screen, at its beginning. */
class Seen extends RangeValue {
  // Without its first character it is another line.
  override mapMode = MapMode.TrackAfter;
}

const SEEN = new Seen();
const noted = StateEffect.define<readonly number[]>();

/** The lines of the text to be written that were on the screen, or were typed by the user. */
export const seenLines = StateField.define<RangeSet<Seen>>({
  create: () => RangeSet.empty,
  update(lines, transaction) {
    let now = lines;
    const doc = transaction.newDoc;
    const add = (positions: readonly number[]): void => {
      now = now.update({ add: positions.filter((at) => !has(now, at)).map((at) => SEEN.range(at)), sort: true });
    };
    if (transaction.docChanged) {
      now = now.map(transaction.changes);
      if (transaction.annotation(Transaction.addToHistory) !== false) {
        transaction.changes.iterChangedRanges((_from, _to, from, to) => {
          const typed: number[] = [];
          for (let line = doc.lineAt(from).number; line <= doc.lineAt(to).number; line += 1)
            typed.push(doc.line(line).from);
          add(typed);
        });
      }
    }
    for (const effect of transaction.effects) if (effect.is(noted)) add(effect.value);
    return now;
  },
});

function has(lines: RangeSet<Seen>, at: number): boolean {
  let found = false;
  lines.between(at, at, () => {
    found = true;
    return false;
  });
  return found;
}

/** What was seen, to be taken up by another view of the same text. */
export interface SeenState {
  text: string;
  old: ReadonlySet<number>;
  now: readonly number[];
}

/** A changed line: on the old side, or in the text to be written; lines count from 1. */
interface Place {
  isOld: boolean;
  line: number;
}

/** Notes which changed lines are on the screen. `left` is the editor of the old text, if it has one. */
export class EditorSeen {
  #old: Set<number>;
  #stretches = new Map<string, Stretch[]>();
  #counts: { hunks: boolean[]; seen: number; next: Place | undefined } | undefined;

  constructor(
    private readonly right: EditorView,
    private readonly left: EditorView | undefined,
    private readonly before: Text,
    private readonly parent: HTMLElement,
    known?: SeenState,
  ) {
    const isSame = known?.text === right.state.doc.toString();
    this.#old = new Set(known?.old ?? []);
    if (known && isSame) right.dispatch({ effects: noted.of(known.now) });
  }

  get state(): SeenState {
    const now: number[] = [];
    const lines = this.right.state.field(seenLines);
    for (const cursor = lines.iter(); cursor.value; cursor.next()) now.push(cursor.from);
    return { text: this.right.state.doc.toString(), old: this.#old, now };
  }

  /** The text has changed, or what was on the screen: the numbers are to be found anew. */
  changed(): void {
    this.#counts = undefined;
  }

  textChanged(): void {
    this.changed();
    for (const key of this.#stretches.keys()) if (key.startsWith("new")) this.#stretches.delete(key);
  }

  get counts(): { seen: number; all: number } {
    const { hunks, seen } = this.#count();
    return { seen, all: hunks.length };
  }

  /** Whether each hunk was on the screen as a whole. */
  get hunks(): readonly boolean[] {
    return this.#count().hunks;
  }

  #count(): { hunks: boolean[]; seen: number; next: Place | undefined } {
    if (this.#counts) return this.#counts;
    const { doc } = this.right.state;
    const seen = this.right.state.field(seenLines);
    let next: Place | undefined;
    const chunks = differenceOf(this.right.state)?.chunks ?? [];
    const hunks = chunks.map((chunk) => {
      const place = this.#firstUnseen(seen, doc, chunk);
      next ??= place;
      return !place;
    });
    return (this.#counts = { hunks, seen: hunks.filter(Boolean).length, next });
  }

  #firstUnseen(seen: RangeSet<Seen>, doc: Text, { oldFrom, oldTo, newFrom, newTo }: LineHunk): Place | undefined {
    // An empty text has one empty line, which nobody removed.
    const oldEnd = this.before.length ? Math.min(oldTo, this.before.lines) : 0;
    for (let line = oldFrom + 1; line <= oldEnd; line += 1) if (!this.#old.has(line)) return { isOld: true, line };
    for (let line = newFrom + 1; line <= Math.min(newTo, doc.lines); line += 1)
      if (!has(seen, doc.line(line).from)) return { isOld: false, line };
    return undefined;
  }

  /** Return whether all lines of a hunk were on the screen. */
  wasSeen({ oldStart, oldLines, start, count }: Hunk): boolean {
    const { doc } = this.right.state;
    const lines = { oldFrom: oldStart, oldTo: oldStart + oldLines.length, newFrom: start, newTo: start + count };
    return this.#firstUnseen(this.right.state.field(seenLines), doc, lines) === undefined;
  }

  /** Note what is on the screen now; return whether another hunk was seen by that as a whole. */
  look(): boolean {
    const { top, bottom: border } = windowOf(this.parent);
    // What stays at the lower border covers what is behind.
    const cover = this.parent.querySelector(".stick > div")?.getBoundingClientRect().top ?? border;
    const bottom = Math.min(border, cover);
    const before = this.#count().seen;
    const positions: number[] = [];
    const isSeen = (key: string, at: number, height: number): boolean => {
      if (height <= 0 || at >= bottom || at + height <= top) return false;
      const slack = slackOf(height);
      const stretches = withStretch(
        this.#stretches.get(key) ?? [],
        [Math.max(0, (top - at) / height), Math.min(1, (bottom - at) / height)],
        slack,
      );
      this.#stretches.set(key, stretches);
      return isWhole(stretches, slack);
    };
    for (const view of this.left ? [this.left, this.right] : [this.right]) {
      for (const block of view.viewportLineBlocks) {
        const text = textBlock(block);
        if (!text) continue;
        const { number, from } = view.state.doc.lineAt(text.from);
        const at = view.documentTop + text.top;
        if (view === this.left) {
          if (isSeen(`old ${number}`, at, text.height)) this.#old.add(number);
        } else if (isSeen(`new ${number}`, at, text.height)) positions.push(from);
      }
    }
    for (const [line, element] of this.#removed({ top, bottom })) {
      const rect = element.getBoundingClientRect();
      if (isSeen(`old ${line}`, rect.top, rect.height)) this.#old.add(line);
    }
    if (positions.some((at) => !has(this.right.state.field(seenLines), at)))
      this.right.dispatch({ effects: noted.of(positions) });
    this.changed();
    return this.#count().seen !== before;
  }

  /** Return the removed lines that are drawn in one column, by their numbers from 1; with a window only those in it. */
  #removed(within?: { top: number; bottom: number }): [number, Element][] {
    if (this.left) return [];
    const blocks = [...this.parent.querySelectorAll(".cm-deletedBlock")].filter((block) => {
      const { top, bottom } = within ? block.getBoundingClientRect() : { top: 0, bottom: 0 };
      return !within || (bottom > within.top && top < within.bottom);
    });
    return blocks.flatMap((block) =>
      [...block.querySelectorAll<HTMLElement>(".cm-deletedLine")].map((row): [number, Element] => [
        Number(row.dataset.line),
        row,
      ]),
    );
  }

  /** Scroll to what was not on the screen yet. */
  go(scrollTo: (view: EditorView, position: number) => void): void {
    const { next } = this.#count();
    if (!next) return;
    const view = next.isOld && this.left ? this.left : this.right;
    const { doc } = view.state;
    const from = firstUnseen(this.#stretches.get(`${next.isOld ? "old" : "new"} ${next.line}`));
    if (next.isOld && !this.left) {
      const chunk = (differenceOf(this.right.state)?.chunks ?? []).find(
        ({ oldFrom, oldTo }) => oldFrom < next.line && next.line <= oldTo,
      );
      const at = chunk?.newFrom ?? 0;
      scrollTo(view, at < doc.lines ? doc.line(at + 1).from : doc.length);
      requestAnimationFrame(() => {
        const rect = this.#removed()
          .find(([line]) => line === next.line)?.[1]
          .getBoundingClientRect();
        if (rect) this.#scrollTo(rect.top + from * rect.height);
      });
      return;
    }
    const position = doc.line(Math.min(next.line, doc.lines)).from;
    scrollTo(view, position);
    requestAnimationFrame(() => {
      const block = view.lineBlockAt(position);
      const { top, height } = textBlock(block) ?? block;
      this.#scrollTo(view.documentTop + top + from * height);
    });
  }

  /** Bring a place of the screen to the upper border of the window, with a little of what is above it. */
  #scrollTo(at: number): void {
    const { top, bottom } = windowOf(this.parent);
    const scroller = scrollerOf(parentOf(this.parent) ?? this.parent);
    scroller.scrollBy(0, at - top - Math.min(20, (bottom - top) / 4));
  }
}

/** Return the text of a line among what is drawn above and below it; undefined if the line has none. */
function textBlock(block: BlockInfo): BlockInfo | undefined {
  return typeof block.type === "number" ? block : block.type.find((one) => one.type === BlockType.Text);
}
