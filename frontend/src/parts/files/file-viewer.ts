import { problemText } from "../../problems/words.ts";
import { LitElement, css, html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { Selection } from "../../server/files.ts";
import { visible } from "../../text/safe.ts";
import type { TextView } from "../../text/text-viewer.ts";
import { t } from "../../words.ts";

const SHOWN = 50_000;

/** The text of a file, to be read and selected. Tells `selected` with the selection, and `key` for keys of the page. */
@customElement("isthmus-file")
export class FileElement extends LitElement {
  static override styles = css`
    :host {
      display: block;
      min-width: 0;
      min-height: 0;
      background: var(--surface);
      overflow: hidden;
      position: relative;
    }
    :host(:focus-within)::after {
      content: "";
      position: absolute;
      inset: 0;
      border: 2px solid var(--focus);
      pointer-events: none;
      z-index: 1;
    }
    .box {
      height: 100%;
    }
    pre {
      font: var(--t-code) var(--font-code);
      white-space: pre-wrap;
      overflow-wrap: anywhere;
      padding: 12px 16px;
      margin: 0;
      height: 100%;
      overflow: auto;
      box-sizing: border-box;
    }
    p {
      font: var(--t-sm) var(--font-ui);
      color: var(--text-2);
      padding: 12px 16px;
      margin: 0;
    }
  `;
  @property() text = "";
  @property() path = "";
  /** State of the file whose text it is: a file of the same text is drawn again if it was written. */
  @property() state = "";
  @property({ attribute: false }) selection: Selection | null = null;
  @state() private failed = "";
  #view: TextView | undefined;
  #wantsFocus = false;

  get isPlain(): boolean {
    return /[^\n]{20000}/.test(this.text);
  }

  override focus(): void {
    if (this.#view) this.#view.focus();
    else this.#wantsFocus = true;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#view?.destroy();
    this.#view = undefined;
  }

  override updated(changed: Map<string, unknown>): void {
    if (changed.has("text") || changed.has("path") || changed.has("state")) this.#draw();
  }

  override render() {
    if (this.isPlain || this.failed) {
      return html`<p role="status">${this.failed || t("longLines")}</p>
        <pre tabindex="0">${visible(this.text.slice(0, SHOWN))}</pre>`;
    }
    return html`<div class="box"></div>`;
  }

  #draw(): void {
    const hadFocus = Boolean(this.shadowRoot?.activeElement);
    this.#view?.destroy();
    this.#view = undefined;
    if (!this.shadowRoot?.querySelector("div")) return;
    const { text, path, state, selection } = this;
    import("../../text/text-viewer.ts")
      .then(({ showText }) => {
        const root = this.shadowRoot;
        if (
          !this.isConnected ||
          this.#view ||
          state !== this.state ||
          path !== this.path ||
          !root?.querySelector("div")
        )
          return;
        this.#view = showText(root, {
          text,
          path,
          selection,
          label: visible(path),
          onSelect: (selected) => this.dispatchEvent(new CustomEvent<Selection>("selected", { detail: selected })),
          onKey: (key) => this.dispatchEvent(new CustomEvent<string>("key", { detail: key })),
        });
        if (hadFocus || this.#wantsFocus) this.#view.focus();
        this.#wantsFocus = false;
      })
      .catch(() => {
        this.failed = problemText("noReach");
      });
  }
}
