import { html, nothing } from "lit";
import { customElement, state } from "lit/decorators.js";
import { scrollerOf, watchScreen, windowOf } from "../../diff/on-screen.ts";
import { icon } from "../../frame/icons.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Height of a line of a diff in px. */
const LINE = 20;

/** How many lines of the diff of its card are below what is in view; a press goes on to them. */
@customElement("isthmus-below")
export class LinesBelow extends PageElement {
  @state() private count = 0;
  #screen: ReturnType<typeof watchScreen> | undefined;
  #sizes = new ResizeObserver(() => this.#screen?.soon());
  #observed: Element | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#screen = watchScreen(() => this.#look());
    this.#screen.soon();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#screen?.end();
    this.#sizes.disconnect();
    this.#observed = undefined;
  }

  override render() {
    if (!this.count) return nothing;
    const words = t(this.count === 1 ? "lineBelow" : "linesBelow", this.count);
    return html`<button class="below num" @click=${this.#go}>${words} ${icon("next")}</button>`;
  }

  override updated(): void {
    this.#screen?.soon();
  }

  get #diff(): Element | undefined {
    return this.closest(".card-body")?.querySelector("isthmus-diff.main") ?? undefined;
  }

  #look(): void {
    const diff = this.#diff;
    if (diff !== this.#observed) {
      this.#sizes.disconnect();
      if (diff) this.#sizes.observe(diff);
      this.#observed = diff;
    }
    const rest = diff?.clientHeight ? diff.getBoundingClientRect().bottom - windowOf(diff).bottom : 0;
    this.count = Math.max(0, Math.ceil((rest - 1) / LINE));
  }

  #go = (): void => {
    const diff = this.#diff;
    if (!diff?.parentElement) return;
    const { top, bottom } = windowOf(diff);
    // The last line stays in view, so that nothing is passed over.
    scrollerOf(diff.parentElement).scrollBy(0, Math.max(LINE, bottom - top - 2 * LINE));
  };
}
