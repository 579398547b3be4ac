import { LitElement, css, html } from "lit";
import { customElement, property } from "lit/decorators.js";
import { LONG_STYLES } from "../../diff/long-styles.ts";
import { textRows } from "../../diff/long-rows.ts";
import { LongView } from "../../diff/long-view.ts";
import { t } from "../../words.ts";

/** A text to allow that is so long that all of it is to be seen: `unseen` and `seen` are those of a diff. */
@customElement("isthmus-long-text")
export class LongText extends LitElement {
  static override styles = css`
    :host {
      display: block;
      min-width: 0;
      background: var(--surface);
    }
    ${LONG_STYLES}
  `;
  @property() text = "";
  @property() label = "";
  #long: LongView | undefined;

  get unseen(): { seen: number; all: number } | undefined {
    const counts = this.#long?.seen.counts;
    return counts && counts.seen === counts.all ? undefined : (counts ?? { seen: 0, all: 1 });
  }

  goUnseen(): void {
    this.#long?.goUnseen();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    // It was moved: what was drawn was cleared away.
    if (this.hasUpdated) this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#long?.destroy();
    this.#long = undefined;
  }

  override updated(changed: Map<string, unknown>): void {
    const root = this.shadowRoot?.querySelector<HTMLElement>(".long");
    if (!root || (!changed.has("text") && this.#long)) return;
    this.#long?.destroy();
    const rows = textRows(this.text, { alikeCharacters: () => "", noNewline: "" });
    const tell = (): void => {
      this.dispatchEvent(new CustomEvent("seen", { bubbles: true, composed: true }));
    };
    this.#long = new LongView(root, rows, 0, { hunk: () => "", alike: () => "", added: "", removed: "" }, tell);
    tell();
  }

  override render() {
    return html`<div class="long" role="region" tabindex="0" dir="ltr" aria-label=${this.label || t("run")}></div>`;
  }
}
