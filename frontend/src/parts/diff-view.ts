import { LitElement, css, html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import type { DiffView } from "../diff-editor.ts";
import type { LineCounts } from "../diffs.ts";
import type { FileDiff } from "../protocol.ts";
import { countLines } from "../task-fold.ts";
import { visible } from "../safe.ts";
import { t } from "../words.ts";

const SIDES_FROM = 960;
const MAXIMUM = 400_000;
const SIDES_KEY = "isthmus.sides";

/** A diff, with its right side editable if that is wanted. `text` is what will be written. */
@customElement("isthmus-diff")
export class DiffElement extends LitElement {
  static override styles = css`
    :host { display: block; min-width: 0; background: var(--surface); }
    pre { font: var(--t-code) var(--font-code); white-space: pre-wrap; overflow-wrap: anywhere; padding: 12px 16px; margin: 0; }
    p { font: var(--t-sm) var(--font-ui); color: var(--text-2); padding: 12px 16px; margin: 0; }
  `;
  @property() oldText: string | undefined;
  @property() newText = "";
  @property() path = "";
  @property({ type: Boolean }) editable = false;
  @state() private failed = "";
  text = "";
  /** Whether all of the diff is drawn; `shown` says when. */
  isShown = false;
  #view: DiffView | undefined;
  #sides = false;
  #size = new ResizeObserver(() => this.#fit());

  get isEdited(): boolean {
    return this.text !== this.newText;
  }

  /** Change between side by side and one column, for this device. */
  toggle(): void {
    localStorage.setItem(SIDES_KEY, this.#sides ? "no" : "yes");
    this.#fit();
  }

  undo(): void {
    this.edit(this.newText);
  }

  /** Replace what will be written. */
  edit(text: string): void {
    this.text = text;
    this.#draw();
    this.#tell();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#size.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#size.disconnect();
    this.#view?.destroy();
    this.#view = undefined;
  }

  override updated(changed: Map<string, unknown>): void {
    if (changed.has("oldText") || changed.has("newText") || changed.has("path") || changed.has("editable")) {
      if (changed.has("newText")) this.text = this.newText;
      this.#sides = this.#wantsSides();
      this.#draw();
    }
  }

  override render() {
    if (this.#isLarge) {
      return html`<p>${t("tooLarge", this.newText.length.toLocaleString())}</p><pre tabindex="0">${visible(this.newText.slice(0, 50_000))}</pre>`;
    }
    if (this.newText.includes("\0") || this.oldText?.includes("\0")) return html`<p>${t("binary")}</p>`;
    return html`<div></div>${this.failed ? html`<p>${this.failed}</p><pre>${visible(this.newText.slice(0, 50_000))}</pre>` : nothing}`;
  }

  get #isLarge(): boolean {
    return this.newText.length + (this.oldText?.length ?? 0) > MAXIMUM || /[^\n]{20000}/.test(this.newText);
  }

  #wantsSides(): boolean {
    const chosen = localStorage.getItem(SIDES_KEY);
    const isWide = this.clientWidth >= SIDES_FROM;
    return this.oldText !== undefined && (chosen === "yes" || (chosen !== "no" && isWide)) && this.clientWidth >= 480;
  }

  #fit(): void {
    if (this.#view && this.#wantsSides() !== this.#sides) {
      this.#sides = !this.#sides;
      this.#draw();
    }
  }

  #draw(): void {
    this.#view?.destroy();
    this.#view = undefined;
    this.isShown = false;
    if (!this.shadowRoot?.querySelector("div")) { this.#show(); return; }
    const wanted = { before: this.oldText ?? "", after: this.text, path: this.path, sides: this.#sides };
    import("../diff-editor.ts").then(({ showDiff }) => {
      const root = this.shadowRoot;
      if (!this.isConnected || this.#view || !root?.querySelector("div")) return;
      this.#view = showDiff(root, {
        ...wanted, editable: this.editable, label: {
          before: t("asItIs", visible(this.path)), after: t("asItWillBe", visible(this.path)), accept: t("acceptHunk"), keep: t("keepHunk"),
        },
        onChange: (text) => { this.text = text; this.#tell(); },
      });
      this.#show();
    }).catch(() => {
      this.failed = t("noReach");
      this.#show();
    });
  }

  #show(): void {
    this.isShown = true;
    this.dispatchEvent(new CustomEvent("shown"));
  }

  #tell(): void {
    this.dispatchEvent(new CustomEvent("edited", { bubbles: true, composed: true }));
  }
}

const COUNTS = new WeakMap<FileDiff, LineCounts>();

export function countsOf(diff: FileDiff) {
  let counts = COUNTS.get(diff);
  if (!counts) COUNTS.set(diff, (counts = countLines(diff.old_content ?? "", diff.new_content)));
  return shownCounts(counts);
}

export function shownCounts({ added, removed }: LineCounts) {
  return html`<span class="num"><span class="add">+${added}</span> <span class="del">−${removed}</span></span>`;
}
