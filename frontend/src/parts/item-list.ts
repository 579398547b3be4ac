import { html } from "lit";
import { customElement, property } from "lit/decorators.js";
import { repeat } from "lit/directives/repeat.js";
import { PageElement } from "./base.ts";
import { Heights } from "./heights.ts";

/** Pixels above and below what is seen that are drawn, too. */
const AROUND = 800;
/** Pixels from the end within which new content keeps the end in view. */
const NEAR_END = 80;
const ESTIMATE = 56;

interface Keyed {
  key: string;
}

/**
 * A long list of which only what is seen is in the document. What is read stays where it is while items above it come,
 * are measured or change; a reader at the end stays at the end.
 */
@customElement("isthmus-items")
export class ItemList extends PageElement {
  @property({ attribute: false }) items: readonly Keyed[] = [];
  @property({ attribute: false }) draw: (item: never) => unknown = () => "";
  /** Changes with the content of the items. */
  @property({ attribute: false }) version: unknown = 0;
  isAtEnd = true;
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
  /** Place of the list when it was last looked at. */
  #known = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add("scroll");
    this.addEventListener("scroll", this.#scrolled, { passive: true });
    this.#sizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener("scroll", this.#scrolled);
    this.#sizes.disconnect();
    this.#observed.clear();
  }

  /** Show the end, and follow it from now on. */
  toEnd(): void {
    this.isAtEnd = true;
    this.requestUpdate();
  }

  /** Show an item at the upper edge, and give its `.said`, if it has one, the focus. */
  async reveal(index: number): Promise<void> {
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
    shown?.querySelector<HTMLElement>(".said")?.focus({ preventScroll: true });
  }

  /** Begin with other items. */
  reset(): void {
    this.#heights = new Heights();
    this.#measured.clear();
    this.#anchor = { index: 0, key: "", below: 0 };
    this.isAtEnd = true;
    this.#sum = 0;
  }

  override willUpdate(): void {
    this.#notice();
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
          (item) => html`<div class="it" .key=${item.key}>${this.draw(item as never)}</div>`,
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
    if (!isLonger && this.#anchor.key && items[this.#anchor.index]?.key !== this.#anchor.key) {
      this.#anchor.index = Math.max(
        0,
        items.findIndex((item) => item.key === this.#anchor.key),
      );
    }
  }

  get #top(): number {
    const end = Math.max(0, this.#heights.total - this.clientHeight);
    return this.isAtEnd
      ? end
      : Math.min(end, Math.max(0, this.#heights.offset(this.#anchor.index) - this.#anchor.below));
  }

  #choose(): void {
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
    const top = this.isAtEnd ? this.scrollHeight : this.#top;
    if (Math.abs(this.scrollTop - top) > 0.5) this.scrollTop = top;
    this.#known = this.scrollTop;
  }

  /** Take over a scroll whose event has not come yet, so that it is not undone. */
  #notice(): void {
    if (this.hasUpdated && Math.abs(this.scrollTop - this.#known) > 1) this.#remember();
  }

  #remember(): void {
    const { scrollTop, scrollHeight, clientHeight } = this;
    this.#known = scrollTop;
    this.isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
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

  #scrolled = (): void => {
    this.#remember();
    if (!this.#isCovered()) this.requestUpdate();
  };
}
