import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { copyText } from "../text/copying.ts";
import { icon } from "../frame/icons.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

const SAID_MS = 2_000;

/** A button that copies a text, and says so. */
@customElement("isthmus-copy")
export class CopyButton extends PageElement {
  /** Returns what is copied, when it is asked for. */
  @property({ attribute: false }) text: () => string | Promise<string> = () => "";
  @property() label = "";
  @state() private said = "";
  #timer = 0;

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
    this.said = "";
  }

  override render() {
    return html`<button
        class="b small quiet icon"
        aria-label=${this.label}
        title=${this.said || this.label}
        @click=${() => void this.#copy()}
      >
        ${icon(this.said && this.said === t("copied") ? "check" : "copy")}</button
      ><span class="vh" role="status">${this.said || nothing}</span>`;
  }

  async #copy(): Promise<void> {
    this.said = (await copyText(await this.text())) ? t("copied") : t("notCopied");
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      this.said = "";
    }, SAID_MS);
  }
}
