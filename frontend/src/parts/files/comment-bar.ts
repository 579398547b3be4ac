import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../../frame/icons.ts";
import { numeral } from "../../language.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";
import "../../styles/comments.css";

/**
 * The comments that gathered in a card: their number, what becomes of them, and the way through them. `step` leads to the
 * next or the previous one; `alone` sends them without an answer.
 */
@customElement("isthmus-comments")
export class CommentBar extends PageElement {
  @property({ type: Number }) count = 0;
  /** With which answers they go back. */
  @property() note = "";
  /** The comments as text, for an agent that they do not reach. */
  @property() text = "";
  @property({ type: Boolean }) canGoAlone = false;
  @property({ type: Boolean }) isBusy = false;
  @state() private isCopied = false;

  override render() {
    return html`<div class="comment-bar" role="group" aria-label=${this.#name}>
      ${icon("comment")}<b class="num" role="status">${this.#name}</b>
      ${this.#step(-1, "previousComment", "up")} ${this.#step(1, "nextComment", "next")}
      <span class="t2 note">${this.note}</span>
      ${this.text && navigator.clipboard ? html`<button class="b small" @click=${() => void this.#copy()}>${t(this.isCopied ? "copied" : "copyComments")}</button>` : nothing}
      ${
        this.canGoAlone
          ? html`<button
              class="b small"
              title=${t("sendAloneWhat")}
              ?disabled=${this.isBusy}
              @click=${() => this.dispatchEvent(new CustomEvent("alone"))}
            >
              ${t("sendAlone")}
            </button>`
          : nothing
      }
    </div>`;
  }

  get #name(): string {
    return this.count === 1 ? t("oneComment") : t("countComments", numeral(this.count));
  }

  #step(by: 1 | -1, name: "previousComment" | "nextComment", shape: "up" | "next") {
    return html`<button
      class="b small quiet icon"
      aria-label=${t(name)}
      title=${t(name)}
      @click=${() => this.dispatchEvent(new CustomEvent<1 | -1>("step", { detail: by }))}
    >
      ${icon(shape)}
    </button>`;
  }

  async #copy(): Promise<void> {
    await navigator.clipboard.writeText(this.text);
    this.isCopied = true;
  }
}
