import { html } from "lit";
import { customElement, property } from "lit/decorators.js";
import { repeat } from "lit/directives/repeat.js";
import type { ReadList, Reading } from "../../visits.ts";
import { PageElement } from "../base.ts";
import { type Scrolled, followedPlace, isAtWaiting, isFollowing, placeOf } from "./following.ts";
import { Heights } from "./heights.ts";

/** Pixels above and below what is seen that are drawn, too. */
const AROUND = 800;
const ESTIMATE = 56;
/** Most pixels of the list above its first item and below its last one, together. */
const PADDING = 40;

interface Keyed {
  key: string;
}

/**
 * A long list of which only what is seen is in the document. What is read stays where it is while items above it come,
 * are measured or change; a reader at the end stays at the end, but goes no further than to an item that waits. Tells
 * "moved" when other items may be in view. For a print all items are drawn.
 */
@customElement("isthmus-items")
export class ItemList extends PageElement implements ReadList {
  @property({ attribute: false }) items: readonly Keyed[] = [];
  @property({ attribute: false }) draw: (item: never) => unknown = () => "";
  /** Changes with the content of the items. */
  @property({ attribute: false }) version: unknown = 0;
  /** Key of the item that was found by a search. */
  @property() found = "";
  /** Key of the first item that waits for the user; empty without one. */
  @property() waiting = "";
  isAtEnd = true;
  /** Index of the item that waits; -1 without one. */
  #waitingAt = -1;
  /** Whether the reader was at the item that waits, or behind it, and goes on to the next once it waits no more. */
  #goesOn = false;
  #isPrinted = false;
  #heights = new Heights();
  #measured = new Map<string, number>();
  #first = "";
  #last = "";
  #from = 0;
  #to = 0;
  /** Item whose place on the screen stays, and its distance from the upper edge. */
  #anchor = { index: 0, key: "", below: 0 };
  #observed = new Set<HTMLElement>();
  #sizes = new ResizeObserver((entries) => this.#measure(entries));
  #sum = 0;
  /** Place of the list, and the height of its window, when it was last looked at. */
  #known = 0;
  #knownHeight = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add("scroll");
    this.addEventListener("scroll", this.#wasScrolled, { passive: true });
    addEventListener("beforeprint", this.#print);
    addEventListener("afterprint", this.#print);
    this.#sizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener("scroll", this.#wasScrolled);
    removeEventListener("beforeprint", this.#print);
    removeEventListener("afterprint", this.#print);
    this.#sizes.disconnect();
    this.#observed.clear();
  }

  /** Return where an item is for the reader; undefined if there is none of that key. */
  placeOf(key: string): "above" | "in" | "below" | undefined {
    const at = this.items.findLastIndex((item) => item.key === key);
    if (at < 0 || at >= this.#heights.length) return undefined;
    return placeOf(this.#heights.offset(at), this.#heights.get(at), this.#top, this.clientHeight);
  }

  /** Show the end, and follow it from now on. */
  toEnd(): void {
    this.isAtEnd = true;
    this.requestUpdate();
  }

  /** Show an item below a part of what is before it, as a reader sees it who follows the end. */
  async show(key: string): Promise<void> {
    const index = this.items.findLastIndex((item) => item.key === key);
    if (index < 0) return;
    this.isAtEnd = false;
    const offset = this.#heights.offset(index);
    const place = followedPlace({ ...this.#scrolled, waiting: offset });
    this.#anchor = { index, key, below: offset - place };
    this.#known = this.scrollTop;
    this.#goesOn = true;
    this.requestUpdate();
    await this.updateComplete;
  }

  /** Show an item at the upper edge; unless told otherwise, give its `.said`, if it has one, the focus. */
  async reveal(index: number, takesFocus = true): Promise<void> {
    const key = this.items[index]?.key;
    if (key === undefined) return;
    this.isAtEnd = false;
    this.#anchor = { index, key, below: 0 };
    this.#known = this.scrollTop;
    this.requestUpdate();
    await this.updateComplete;
    const shown = [...this.querySelectorAll<HTMLElement & Keyed>(":scope > .col > .it")].find(
      (element) => element.key === key,
    );
    if (takesFocus) shown?.querySelector<HTMLElement>(".said")?.focus({ preventScroll: true });
  }

  get reading(): Reading | undefined {
    this.#notice();
    const { key, below } = this.#anchor;
    return this.isAtEnd || !key ? undefined : { key, below };
  }

  /** Show what was read again; items before those that are there are asked for. */
  resume({ key, below }: Reading): boolean {
    const index = this.items.findIndex((item) => item.key === key);
    if (index < 0) {
      if (this.items.length) this.dispatchEvent(new Event("beginning"));
      return false;
    }
    this.isAtEnd = false;
    this.#anchor = { index, key, below };
    this.#known = this.scrollTop;
    this.requestUpdate();
    return true;
  }

  /** Begin with other items. */
  reset(): void {
    this.#heights = new Heights();
    this.#measured.clear();
    this.#anchor = { index: 0, key: "", below: 0 };
    this.isAtEnd = true;
    this.#goesOn = false;
    this.#sum = 0;
  }

  override willUpdate(changed: Map<string, unknown>): void {
    this.#notice();
    // Another item may wait in the same moment in which the one that was read does no more.
    if (changed.get("waiting") && this.#goesOn) this.isAtEnd = true;
    this.#count();
    this.#choose();
    this.#keepFocus();
  }

  override render() {
    const shown = this.items.slice(this.#from, this.#to);
    return html`<div class="space"></div>
      <div class="col">
        ${repeat(
          shown,
          (item) => item.key,
          (item) =>
            html`<div class="it ${item.key === this.found ? "found" : ""}" .key=${item.key}>
              ${this.draw(item as never)}
            </div>`,
        )}
      </div>
      <div class="space"></div>`;
  }

  override updated(): void {
    const shown = new Set(this.querySelectorAll<HTMLElement>(":scope > .col > .it"));
    for (const element of this.#observed)
      if (!shown.has(element)) {
        this.#sizes.unobserve(element);
        this.#observed.delete(element);
      }
    for (const element of shown)
      if (!this.#observed.has(element)) {
        this.#sizes.observe(element);
        this.#observed.add(element);
      }
    // Measured now: what an observer of sizes draws is measured by it one frame later, and was seen at its estimate.
    if (
      this.#take([...shown].map((element) => [element, element.getBoundingClientRect().height])) &&
      !this.#isCovered()
    )
      this.requestUpdate();
    else this.#tellBeginning();
  }

  /** Take over what was added; begin anew if anything else changed. */
  #count(): void {
    const known = this.#heights.length;
    const { items } = this;
    const isLonger =
      known > 0 && items.length >= known && items[0]?.key === this.#first && items[known - 1]?.key === this.#last;
    if (!isLonger) this.#heights = new Heights();
    const estimate = this.#measured.size ? this.#sum / this.#measured.size : ESTIMATE;
    for (let at = this.#heights.length; at < items.length; at += 1)
      this.#heights.push(this.#measured.get(items[at]?.key ?? "") ?? estimate);
    this.#first = items[0]?.key ?? "";
    this.#last = items.at(-1)?.key ?? "";
    this.#waitingAt = this.waiting ? items.findIndex((item) => item.key === this.waiting) : -1;
    if (!isLonger && this.#anchor.key && items[this.#anchor.index]?.key !== this.#anchor.key) {
      this.#anchor.index = Math.max(
        0,
        items.findIndex((item) => item.key === this.#anchor.key),
      );
    }
  }

  /** What is needed to tell where the end is followed to. */
  get #scrolled(): Scrolled {
    const waiting = this.#waitingAt < 0 ? undefined : this.#heights.offset(this.#waitingAt);
    return { total: this.#heights.total, height: this.clientHeight, waiting };
  }

  get #top(): number {
    const end = Math.max(0, this.#heights.total + PADDING - this.clientHeight);
    return this.isAtEnd
      ? followedPlace(this.#scrolled)
      : Math.min(end, Math.max(0, this.#heights.offset(this.#anchor.index) - this.#anchor.below));
  }

  #choose(): void {
    if (this.#isPrinted) {
      this.#from = 0;
      this.#to = this.items.length;
      return;
    }
    const top = this.#top;
    this.#from = this.#heights.at(top - AROUND);
    this.#to = Math.min(this.items.length, this.#heights.at(top + (this.clientHeight || 800) + AROUND) + 1);
  }

  /** What has the focus must not leave the document unseen: the list takes the focus over. */
  #keepFocus(): void {
    const focused = document.activeElement;
    const holder =
      focused instanceof HTMLElement && focused !== this && this.contains(focused)
        ? focused.closest<HTMLElement & Keyed>(".it")
        : null;
    if (!holder) return;
    for (let at = this.#from; at < this.#to; at += 1) if (this.items[at]?.key === holder.key) return;
    this.focus({ preventScroll: true });
  }

  #measure(entries: ResizeObserverEntry[]): void {
    this.#notice();
    this.#take(entries.map((entry) => [entry.target, entry.borderBoxSize[0]?.blockSize ?? 0]));
    if (!this.#isCovered()) this.requestUpdate();
  }

  /** Take over the heights of items, in pixels; return whether one was not known. */
  #take(sizes: readonly (readonly [Element, number])[]): boolean {
    if (!this.clientHeight) return false; // hidden: nothing has a height
    let isNew = false;
    const indexes = new Map<string, number>();
    for (let at = this.#from; at < this.#to; at += 1) indexes.set(this.items[at]?.key ?? "", at);
    for (const [element, height] of sizes) {
      if (element === this || !element.isConnected) continue;
      const { key } = element as unknown as Keyed;
      const index = indexes.get(key);
      if (index === undefined) continue;
      isNew ||= this.#measured.get(key) !== height;
      this.#sum += height - (this.#measured.get(key) ?? 0);
      this.#measured.set(key, height);
      this.#heights.set(index, height);
    }
    this.#place();
    return isNew;
  }

  /** Give the spaces their heights, and put what is read where it was. */
  #place(): void {
    const [above, below] = this.querySelectorAll<HTMLElement>(":scope > .space");
    if (!above || !below) return;
    above.style.height = `${this.#heights.offset(this.#from)}px`;
    below.style.height = `${Math.max(0, this.#heights.total - this.#heights.offset(this.#to))}px`;
    const isAtVeryEnd = this.isAtEnd && this.#top >= this.#heights.total - this.clientHeight;
    const top = isAtVeryEnd ? this.scrollHeight : this.#top;
    if (Math.abs(this.scrollTop - top) > 0.5) this.scrollTop = top;
    this.#known = this.scrollTop;
    this.#knownHeight = this.clientHeight;
    this.dispatchEvent(new Event("moved"));
  }

  /** Take over a scroll whose event has not come yet, so that it is not undone. */
  #notice(): void {
    if (!this.hasUpdated) return;
    const up = this.#known - this.scrollTop;
    if (Math.abs(up) <= 1) return;
    // The browser moves the end up where the window has grown: no reader has scrolled.
    if (this.isAtEnd && up > 0 && up <= this.clientHeight - this.#knownHeight + 1) return;
    this.#remember();
  }

  #remember(): void {
    const { scrollTop, scrollHeight, clientHeight } = this;
    this.#known = scrollTop;
    // Its own height is more than that of its items.
    const list = { ...this.#scrolled, total: scrollHeight };
    this.isAtEnd = isFollowing(scrollTop, list);
    this.#goesOn = this.#waitingAt >= 0 && isAtWaiting(scrollTop, list);
    let index = this.#heights.at(scrollTop);
    // A first item that was not drawn yet gets another height: what is drawn and still in view stays instead.
    if (index < this.#from && this.#heights.offset(this.#from) < scrollTop + clientHeight) index = this.#from;
    this.#anchor = { index, key: this.items[index]?.key ?? "", below: this.#heights.offset(index) - scrollTop };
  }

  #isCovered(): boolean {
    const top = this.scrollTop;
    const end = top + this.clientHeight;
    const isAbove = this.#from === 0 || this.#heights.offset(this.#from) <= top - AROUND / 4;
    return isAbove && (this.#to >= this.items.length || this.#heights.offset(this.#to) >= end + AROUND / 4);
  }

  /** Tell that the first item is near, so that items before it may come. */
  #tellBeginning(): void {
    if (this.#from === 0 && this.scrollTop < AROUND && this.clientHeight) this.dispatchEvent(new Event("beginning"));
  }

  #print = (event: Event): void => {
    this.#isPrinted = event.type === "beforeprint";
    this.requestUpdate();
    // The page is printed as soon as this returns.
    if (this.#isPrinted) this.performUpdate();
  };

  #wasScrolled = (): void => {
    // A scroll of its own may have been cut short by a height that is still to grow.
    this.#notice();
    this.#tellBeginning();
    this.dispatchEvent(new Event("moved"));
    if (!this.#isCovered()) this.requestUpdate();
  };
}
