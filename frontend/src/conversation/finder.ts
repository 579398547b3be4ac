// The search within a session in view: what is sought, what was found, and which place of it is shown.

import { html, nothing } from "lit";
import { findItems, nextFound } from "./session-find.ts";
import type { SessionStream } from "./session-stream.ts";
import type { Item } from "../task/task-fold.ts";
import "../parts/rows/find-bar.ts";

export interface FinderPage {
  requestUpdate(): void;
  /** Open an item, so that what was found in it is seen. */
  unfold(item: Item): void;
  /** The search was closed by its bar. */
  closed(): void;
}

export class Finder {
  isOpen = false;
  /** Index of the item that was found last; -1 without one. */
  foundAt = -1;
  #sought = "";
  #hits: readonly number[] = [];
  #hitsOf = "";
  /** Key of the item that was found last, and whether it is still to be brought into view. */
  #foundKey = "";
  #mustShow = false;

  constructor(
    private readonly stream: SessionStream,
    private readonly page: FinderPage,
  ) {}

  /** Key of the item that was found last; empty without one. */
  get key(): string {
    return this.isOpen ? (this.stream.items[this.foundAt]?.key ?? "") : "";
  }

  open(): void {
    this.isOpen = true;
    this.page.requestUpdate();
  }

  close(): void {
    this.isOpen = this.#mustShow = false;
    this.#sought = "";
    this.#hits = [];
    this.foundAt = -1;
    this.page.requestUpdate();
  }

  /** Find again what is sought if items came, or changed as `version` says; what was found stays found. */
  look(version: number): void {
    if (!this.isOpen) return;
    const { items, session } = this.stream;
    const known = `${this.#sought} ${items.length} ${items[0]?.key ?? ""} ${version}`;
    if (known === this.#hitsOf) return;
    this.#hitsOf = known;
    const key = this.#foundKey;
    this.#hits = findItems(items, this.#sought, session?.workspace);
    if (this.foundAt >= 0) this.foundAt = items.findIndex((item) => item.key === key);
    else if (this.#hits.length && this.#sought) this.#step(-1);
  }

  /** Return the index of an item that was found and is to be brought into view, once; -1 without one. */
  takeShown(): number {
    const mustShow = this.#mustShow;
    this.#mustShow = false;
    return mustShow ? this.foundAt : -1;
  }

  bar() {
    if (!this.isOpen) return nothing;
    return html`<isthmus-find
      .count=${this.#hits.length}
      .place=${this.#hits.indexOf(this.foundAt) + 1}
      ?isReading=${this.stream.hasEarlier || this.stream.isReading}
      @sought=${(event: CustomEvent<string>) => this.#seek(event.detail)}
      @step=${(event: CustomEvent<1 | -1>) => this.#step(event.detail)}
      @closed=${() => this.page.closed()}
    ></isthmus-find>`;
  }

  #seek(text: string): void {
    this.#sought = text;
    this.foundAt = -1;
    if (text.trim()) this.stream.all();
    this.#foundKey = "";
    this.page.requestUpdate();
  }

  #step(by: 1 | -1): void {
    const { items } = this.stream;
    const at = this.#hits[nextFound(this.#hits, this.foundAt < 0 ? items.length : this.foundAt, by)] ?? -1;
    const item = items[at];
    this.foundAt = at;
    this.#foundKey = item?.key ?? "";
    if (!item) return;
    this.#mustShow = true;
    this.page.unfold(item);
    this.page.requestUpdate();
  }
}
