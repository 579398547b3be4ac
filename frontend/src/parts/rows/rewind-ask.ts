import { html, nothing } from "lit";
import { customElement, property } from "lit/decorators.js";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement, READ_MS } from "../base.ts";
import { isForPage, isMeant } from "../../frame/keys.ts";

/** Asks before a rewind where the server does not, because everything is allowed in the session. */
@customElement("isthmus-rewind")
export class RewindAsk extends PageElement {
  @property() what = "";
  @property({ attribute: false }) files: readonly string[] = [];
  #shownAt = Infinity;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#shownAt = performance.now();
    addEventListener("keydown", this.#press, { capture: true });
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press, { capture: true });
  }

  override firstUpdated(): void {
    this.querySelector<HTMLElement>("h2")?.focus();
  }

  override render() {
    return html`<article aria-labelledby="rewind-title">
      <div class="card-top">
        <h2 id="rewind-title" tabindex="-1" dir="auto">${t("rewindTitle", visibleLine(this.what, 80))}</h2>
        ${
          this.files.length
            ? html`<p class="sm t2">${t("rewindTouches")}</p>
                <ul>
                  ${this.files.map((file) => html`<li><code dir="auto">${file}</code></li>`)}
                </ul>`
            : nothing
        }
        <p class="sm t2">${t("rewindAllowed")}</p>
      </div>
      <div class="actions">
        <button class="b primary" @click=${() => this.#tell("agreed")}>${t("rewind")} <kbd>y</kbd></button>
        <button class="b" @click=${() => this.#tell("closed")}>${t("cancel")} <kbd>n</kbd></button>
      </div>
    </article>`;
  }

  #tell(name: "agreed" | "closed"): void {
    this.dispatchEvent(new CustomEvent(name));
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    if (event.key === "y" && isMeant(event) && performance.now() - this.#shownAt >= READ_MS) this.#tell("agreed");
    else if (event.key === "n" || event.key === "Escape") this.#tell("closed");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
