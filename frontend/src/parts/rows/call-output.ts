import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { lastLines, linesIn } from "../../task/call-facts.ts";
import { outputText } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Lines that are shown of an output that is not open. */
const LINES = 7;
/** Characters of an output that are drawn at most: open, and otherwise. */
const WHOLE = 20_000;
const PART = 4_000;
/** Pixels from the end within which new lines keep the end in view. */
const NEAR_END = 8;

/**
 * The output of a call: its last lines, or all that is kept of it. A live one follows its end until the reader scrolls up.
 * Tells `whole` with whether all is to be shown.
 */
@customElement("isthmus-output")
export class CallOutput extends PageElement {
  @property() text = "";
  /** Lines of the whole output, of which `text` may be the end. */
  @property({ type: Number }) lines = 0;
  @property({ type: Boolean }) isLive = false;
  /** Whether the connection is lost, so that more may have been written. */
  @property({ type: Boolean }) isCut = false;
  @property({ type: Boolean }) isWhole = false;
  /** Whether it is read from its beginning, as what was opened by the user. */
  @property({ type: Boolean }) fromTop = false;
  @state() private follows = true;
  @query("pre") private shown!: HTMLElement | null;

  override willUpdate(changed: Map<string, unknown>): void {
    if (!this.hasUpdated && this.fromTop) this.follows = false;
    else if (changed.has("isWhole")) this.follows = true;
  }

  override render() {
    const { text, hidden } = outputText(this.text, this.isWhole ? WHOLE : PART);
    const part = this.isWhole ? text.replace(/\n$/, "") : lastLines(text, LINES).text;
    const above = Math.max(0, this.lines - linesIn(part));
    const isOpener = !this.fromTop && (above > 0 || hidden > 0 || this.isWhole);
    // Of one endless line, characters are missing.
    const count = above || hidden;
    const words = t(above === 1 ? "oneLineAbove" : above ? "linesAbove" : "charactersAbove", count);
    return html`<div class="out-head">
        ${isOpener ? html`<button class="above" aria-expanded=${this.isWhole} @click=${this.#open}>${this.isWhole ? t("fewerLines") : words}</button>` : nothing}
        ${this.isWhole && (above || hidden) ? html`<span class="t3">${t(above ? "linesNotShown" : "charactersNotShown", count)}</span>` : nothing}
      </div>
      <pre class="out ${this.isWhole ? "whole" : "end"}" tabindex="0" dir="ltr" @scroll=${this.#scrolled}>${part}</pre>
      ${this.isCut ? html`<p class="cut-note">${t("fetchedLater")}</p>` : nothing}
      ${this.isLive && !this.follows ? html`<button class="b small follow" @click=${this.#follow}>${t("follow")}</button>` : nothing}`;
  }

  override updated(): void {
    if (this.follows && this.shown) this.shown.scrollTop = this.shown.scrollHeight;
  }

  #open = (): void => {
    this.dispatchEvent(new CustomEvent("whole", { detail: !this.isWhole }));
  };

  #follow = (): void => {
    this.follows = true;
    this.shown?.focus({ preventScroll: true });
  };

  #scrolled = (): void => {
    const place = this.shown;
    if (place) this.follows = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_END && !this.fromTop;
  };
}
