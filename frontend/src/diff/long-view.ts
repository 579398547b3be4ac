// A change or a text of any size in parts that are drawn when they come near the screen. It knows what was on the screen.

import type { Row, RowHunk } from "./long-rows.ts";
import { exactParts } from "../text/safe.ts";
import { SeenParts } from "./seen-parts.ts";
import { scrollerOf, watchScreen, windowOf } from "./on-screen.ts";

/** Numbers of rows and characters that are drawn together. */
const BLOCK = 20;
const BLOCK_CHARACTERS = 4_000;
const LINE_HEIGHT = 20;
/** Width in px of a character, and of all but the text of a row: they only estimate the height of what is not drawn. */
const CHARACTER_WIDTH = 7.8;
const GUTTER_WIDTH = 90;

export interface LongWords {
  /** Heading of a hunk by its number from 1, the number of hunks, and its line; empty for a text without a change. */
  hunk: (number: number, all: number, line: number) => string;
  alike: (lines: number) => string;
  /** Said before each added line; empty for a text without a change. */
  added: string;
  removed: string;
}

interface Block {
  hunk: number;
  rows: readonly Row[];
  element: HTMLElement;
  isDrawn: boolean;
}

/** Shows hunks of rows in an element. `onSeen` is called whenever another hunk was on the screen as a whole. */
export class LongView {
  readonly seen = new SeenParts();
  #blocks: Block[] = [];
  #heads: HTMLElement[] = [];
  #near = new Set<number>();
  #observer: IntersectionObserver;
  #screen = watchScreen(() => this.#look());

  constructor(
    private readonly host: HTMLElement,
    hunks: readonly RowHunk[],
    alikeAfter: number,
    private readonly words: LongWords,
    private readonly onSeen: () => void,
  ) {
    // The margin inside of a box that scrolls is newer than the types.
    const options: IntersectionObserverInit & { scrollMargin: string } = { rootMargin: "600px", scrollMargin: "600px" };
    this.#observer = new IntersectionObserver((entries) => this.#take(entries), options);
    const all = document.createDocumentFragment();
    const columns = Math.max(20, Math.floor((host.clientWidth - GUTTER_WIDTH) / CHARACTER_WIDTH));
    hunks.forEach((hunk, number) => {
      if (hunk.alike) all.append(element("fold", words.alike(hunk.alike)));
      const head = words.hunk(number + 1, hunks.length, hunk.line);
      const section = element("hunk");
      if (head) section.append(element("head", head));
      this.#heads.push(section);
      for (let from = 0, to = 0; from < hunk.rows.length; from = to) {
        for (let size = 0; to < hunk.rows.length && to - from < BLOCK && size < BLOCK_CHARACTERS; to += 1)
          size += hunk.rows[to]?.text.length ?? 0;
        const rows = hunk.rows.slice(from, to);
        const block = element("block");
        const at = this.#blocks.length;
        block.dataset.at = String(at);
        block.style.minHeight = `${LINE_HEIGHT * rows.reduce((sum, row) => sum + Math.max(1, Math.ceil(row.text.length / columns)), 0)}px`;
        this.#blocks.push({ hunk: number, rows, element: block, isDrawn: false });
        if (rows.some((row) => row.kind === "added" || row.kind === "removed")) this.seen.add(number, at);
        section.append(block);
        this.#observer.observe(block);
      }
      all.append(section);
    });
    if (alikeAfter) all.append(element("fold", words.alike(alikeAfter)));
    host.replaceChildren(all);
  }

  destroy(): void {
    this.#observer.disconnect();
    this.#screen.end();
    this.host.replaceChildren();
  }

  /** Scroll to what was not on the screen yet. */
  goUnseen(): void {
    const next = this.seen.next;
    const block = next && this.#blocks[next.part];
    if (!next || !block) return;
    this.#draw(block);
    const { height } = block.element.getBoundingClientRect();
    const { element: target } = block;
    target.scrollIntoView({ block: "start" });
    // Of a block that is higher than the screen, the rest.
    const skipped = next.from * height - LINE_HEIGHT;
    if (skipped > 0) scrollerOf(target).scrollBy(0, skipped);
  }

  /** Where the hunks begin, in px of the screen. */
  get hunkTops(): number[] {
    return this.#heads.map((head) => head.getBoundingClientRect().top);
  }

  get seenHunks(): boolean[] {
    return this.seen.hunks;
  }

  /** Scroll to a hunk. */
  showHunk(hunk: number): void {
    this.#heads[hunk]?.scrollIntoView({ block: "start" });
  }

  /** Scroll to the next hunk below the upper border of the screen, or with -1 to the one above it. */
  goHunk(direction: 1 | -1): void {
    const { top } = windowOf(this.host);
    const tops = this.#heads.map((head) => head.getBoundingClientRect().top - top);
    const target = direction > 0 ? tops.findIndex((one) => one > 1) : tops.findLastIndex((one) => one < -1);
    this.#heads[target]?.scrollIntoView({ block: "start" });
  }

  #take(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const at = Number((target as HTMLElement).dataset.at);
      const block = this.#blocks[at];
      if (!block) continue;
      if (isIntersecting) {
        this.#near.add(at);
        this.#draw(block);
      } else {
        this.#near.delete(at);
      }
    }
    this.#screen.soon();
  }

  #draw(block: Block): void {
    if (block.isDrawn) return;
    block.isDrawn = true;
    block.element.style.minHeight = "";
    block.element.replaceChildren(...block.rows.map((row) => this.#row(row)));
  }

  #row(row: Row): HTMLElement {
    if (row.kind === "note") return element("row note", row.text);
    const kind = this.words.added ? row.kind : "same";
    const line = element(`row ${kind}`);
    const shown = (number: number | undefined): HTMLElement => element("number", number ? String(number) : "");
    // A text without a change has the numbers of its own lines alone.
    const numbers = this.words.added
      ? [shown(kind === "removed" ? row.line : row.old), shown(kind === "removed" ? 0 : row.line)]
      : [shown(row.line)];
    const text = element("text");
    const sign = element("sign", kind === "added" ? "+" : kind === "removed" ? "\u2212" : "");
    sign.setAttribute("aria-hidden", "true");
    const said = kind === "same" ? "" : kind === "added" ? this.words.added : this.words.removed;
    if (said) text.append(element("said", `${said} `));
    const [before, marked, after] = exactParts(row.text, ...(row.mark ?? [row.text.length, row.text.length]));
    if (row.mark) {
      const mark = document.createElement("mark");
      mark.textContent = marked;
      text.append(before, mark, after);
    } else {
      text.append(before);
    }
    line.append(...numbers, sign, text);
    return line;
  }

  /** Note what is on the screen now. */
  #look(): void {
    if (!this.host.checkVisibility()) return;
    const { top, bottom } = windowOf(this.host);
    let isMore = false;
    for (const at of this.#near) {
      const block = this.#blocks[at];
      if (!block?.isDrawn || !this.seen.isAwaited(at)) continue;
      const rect = block.element.getBoundingClientRect();
      const height = Math.max(1, rect.height);
      isMore =
        this.seen.note(at, Math.max(0, (top - rect.top) / height), Math.min(1, (bottom - rect.top) / height), height) ||
        isMore;
    }
    if (isMore) this.onSeen();
  }
}

function element(name: string, text = ""): HTMLElement {
  const made = document.createElement(
    name === "number" || name === "sign" || name === "text" || name === "said" ? "span" : "div",
  );
  made.className = name;
  if (text) made.textContent = text;
  return made;
}
