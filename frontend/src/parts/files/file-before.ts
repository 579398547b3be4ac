import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Before } from "../../server/reviews.ts";
import { numeral } from "../../language.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Kinds that browsers draw without running anything. SVG is text. */
const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A file that is not text, beside what is said of the text that would replace it. */
@customElement("isthmus-before")
export class FileBefore extends PageElement {
  @property({ attribute: false }) was!: Before;
  /** Number of characters of the text that would replace it. */
  @property({ type: Number }) characters = 0;
  @state() private url = "";
  @state() private isBroken = false;

  override willUpdate(changed: Map<string, unknown>): void {
    if (!changed.has("was")) return;
    this.#free();
    this.isBroken = false;
    const { type, data } = this.was;
    if (!data || !type || !KINDS.includes(type)) return;
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    this.url = URL.createObjectURL(new Blob([bytes], { type }));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#free();
  }

  #free(): void {
    if (this.url) URL.revokeObjectURL(this.url);
    this.url = "";
  }

  override render() {
    const { bytes, type } = this.was;
    const size = bytes === null ? "" : `${numeral(bytes)} B`;
    const what =
      type && KINDS.includes(type)
        ? t("imageOf", type.slice(6).toUpperCase(), size)
        : bytes === null
          ? t("unread")
          : t("binaryOf", size);
    return html`<div class="two">
      <figure>
        <figcaption>${t("asItIsNow")}</figcaption>
        ${
          this.url && !this.isBroken
            ? html`<img
                src=${this.url}
                alt=${what}
                @error=${() => {
                  this.isBroken = true;
                }}
              />`
            : nothing
        }
        <p>${what}${this.url && !this.isBroken ? nothing : html` ${t("notShownHere")}`}</p>
      </figure>
      <figure>
        <figcaption>${t("asWritten")}</figcaption>
        <p>${t("textInstead", this.characters)}</p>
      </figure>
    </div>`;
  }
}
