// The map at the right of a long change: where its hunks are, and which part is on the screen. A click scrolls there; by keys
// hunks are reached in other ways, so that it is nothing for screen readers.

import { type MapMark, mapMarks, markAt } from "./map-marks.ts";
import { parentOf, scrollerOf, watchScreen, windowOf } from "./on-screen.ts";

/** A change has a map if it is so many times as high as what is seen of it, and wide enough. */
const LONG = 2;
const LEAST_WIDTH = 720;

/** A change as it is drawn. */
export interface Mapped {
  /** Where its hunks begin, in px of the screen, in order. */
  readonly hunkTops: readonly number[];
  /** Which of its hunks were on the screen as a whole. */
  readonly seenHunks: readonly boolean[];
  showHunk(hunk: number): void;
}

export class ChangeMap {
  #screen = watchScreen(() => this.#look());
  #size = new ResizeObserver(() => this.#screen.soon());
  #map = document.createElement("span");
  #window = document.createElement("u");
  #marks: readonly MapMark[] = [];
  /** Where the hunks begin as shares of the height; found again only when that has changed. */
  #shares: readonly number[] = [];
  #drawn = "";
  #height = 0;

  /** `place` stands above the change in `host`, and stays at the top while that is scrolled. */
  constructor(
    private readonly host: HTMLElement,
    private readonly place: HTMLElement,
    private readonly change: Mapped,
  ) {
    this.#map.className = "map";
    this.#map.addEventListener("click", this.#go);
    this.place.replaceChildren(this.#map);
    this.#size.observe(host);
    this.#screen.soon();
  }

  destroy(): void {
    this.#screen.end();
    this.#size.disconnect();
    this.place.replaceChildren();
    this.host.removeAttribute("mapped");
  }

  /** Other hunks were on the screen. */
  soon(): void {
    this.#screen.soon();
  }

  #look(): void {
    const { host, change } = this;
    if (!host.isConnected || !host.checkVisibility()) return;
    const box = host.getBoundingClientRect();
    const seen = windowOf(host);
    const [top, bottom] = [Math.max(seen.top, box.top), Math.min(seen.bottom, box.bottom)];
    if (!host.hasAttribute("mapped")) {
      const isLong = box.height > LONG * (seen.bottom - seen.top) && box.width >= LEAST_WIDTH;
      if (!isLong || change.hunkTops.length < 2) return;
      // It makes the change narrower, and stays, so that nothing goes to and fro.
      host.toggleAttribute("mapped");
    }
    if (bottom - top < 1) return;
    if (Math.abs(box.height - this.#height) >= 1) {
      this.#height = box.height;
      this.#shares = change.hunkTops.map((at) => (at - box.top) / box.height);
    }
    const border = scrollerOf(parentOf(host) ?? host);
    const upper = border instanceof Element ? border.getBoundingClientRect().top : 0;
    this.place.style.top = `${seen.top - upper}px`;
    this.#draw(bottom - top, (top - box.top) / box.height, (bottom - box.top) / box.height);
  }

  #draw(height: number, from: number, to: number): void {
    this.#map.style.height = `${height}px`;
    this.#window.style.top = `${from * height}px`;
    this.#window.style.height = `${(to - from) * height}px`;
    const current = this.#shares.findIndex((share) => share >= from);
    const marks = mapMarks(this.#shares, this.change.seenHunks, height);
    const isAt = (at: number): boolean =>
      (marks[at] as MapMark).hunk <= current && current < (marks[at + 1]?.hunk ?? Infinity);
    const names = marks.map((mark, at) => (isAt(at) ? "at" : mark.isSeen ? "seen" : ""));
    this.#marks = marks;
    const drawn = marks.map(({ top }, at) => `${top}${names[at]}`).join(" ");
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    this.#map.replaceChildren(
      ...marks.map(({ top }, at) => {
        const mark = document.createElement("i");
        mark.className = names[at] ?? "";
        mark.style.top = `${top}px`;
        return mark;
      }),
      this.#window,
    );
  }

  #go = (event: MouseEvent): void => {
    const map = this.#map.getBoundingClientRect();
    const y = event.clientY - map.top;
    const mark = markAt(this.#marks, y);
    if (mark) {
      this.change.showHunk(mark.hunk);
      return;
    }
    // The place is in the middle afterwards.
    const box = this.host.getBoundingClientRect();
    const to = box.top + (y / map.height) * box.height;
    scrollerOf(parentOf(this.host) ?? this.host).scrollBy(0, to - map.top - map.height / 2);
  };
}
