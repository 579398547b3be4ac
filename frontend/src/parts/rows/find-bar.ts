import { html, nothing } from "lit";
import { customElement, property, query } from "lit/decorators.js";
import { icon } from "../../frame/icons.ts";
import { isComposing } from "../../frame/keys.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Typing is not searched for before this pause. */
const PAUSE_MS = 120;

/** The field of a search within a session; tells "sought" with the text, "step" with the direction, and "closed". */
@customElement("isthmus-find")
export class FindBar extends PageElement {
  @property({ type: Number }) count = 0;
  /** Place among what was found, from 1; 0 before the first. */
  @property({ type: Number }) place = 0;
  @property({ type: Boolean }) isReading = false;
  @query("input") private field!: HTMLInputElement;
  #timer = 0;

  override firstUpdated(): void {
    this.field.focus();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  /** Give the field the focus. */
  write(): void {
    this.field.focus();
    this.field.select();
  }

  override render() {
    const hasWords = !!this.field?.value.trim();
    const said = !hasWords
      ? ""
      : this.count
        ? t("findAt", this.place, this.count)
        : this.isReading
          ? ""
          : t("findNone");
    return html`<search class="find">
      ${icon("search")}
      <input
        class="field grow"
        type="search"
        aria-label=${t("findHint")}
        placeholder=${t("findHint")}
        maxlength="200"
        @input=${this.#typed}
        @keydown=${this.#press}
      />
      <span class="xs t2 num" role="status"
        >${said}${this.isReading && hasWords ? html` <span class="t3">${t("findLoading")}</span>` : nothing}</span
      >
      <button
        class="b small quiet icon"
        aria-label=${t("findBefore")}
        ?disabled=${!this.count}
        @click=${() => this.#step(-1)}
      >
        ${icon("up")}
      </button>
      <button
        class="b small quiet icon"
        aria-label=${t("findNext")}
        ?disabled=${!this.count}
        @click=${() => this.#step(1)}
      >
        ${icon("next")}
      </button>
      <button
        class="b small quiet icon"
        aria-label=${t("close")}
        @click=${() => this.dispatchEvent(new Event("closed"))}
      >
        ${icon("close")}
      </button>
    </search>`;
  }

  #typed = (): void => {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#tell(), PAUSE_MS);
  };

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.dispatchEvent(new CustomEvent<string>("sought", { detail: this.field.value }));
  }

  #press = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    if (event.key === "Enter") {
      if (this.#timer) this.#tell();
      else this.#step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") this.dispatchEvent(new Event("closed"));
    else return;
    event.preventDefault();
  };

  #step(by: 1 | -1): void {
    this.dispatchEvent(new CustomEvent<1 | -1>("step", { detail: by }));
  }
}
