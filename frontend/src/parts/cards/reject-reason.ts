import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { isComposing, isEnter } from "../../frame/keys.ts";
import { PhoneWatch } from "../../phone/phone.ts";
import { ask } from "../../questions/words.ts";
import { visible, visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** A field for the words of a rejection. It sends nothing: `told` has the words, `closed` gives them up. */
@customElement("isthmus-reason")
export class RejectReason extends PageElement {
  @property() name = "";
  /** Name of the agent that gets the words; empty if it is not known. */
  @property() agent = "";
  /** What sending does beside the rejection. */
  @property() note = "";
  /** The same in one line, for a phone. */
  @property() brief = "";
  /** The comments on lines that are sent, too. */
  @property() comments = "";
  /** Whether the words reach the agent; otherwise they can be copied. */
  @property({ type: Boolean }) carries = false;
  @state() private isCopied = false;
  @property({ type: Boolean }) isBusy = false;
  /** Whether something is typed. */
  @state() private hasWords = false;
  @property({ type: Boolean }) isOff = false;
  #phone = new PhoneWatch(this);
  @query("textarea") private field!: HTMLTextAreaElement;

  override firstUpdated(): void {
    this.field.focus();
  }

  override render() {
    return html`<form class="reason" @submit=${this.#send}>
      ${this.comments ? html`<pre class="command" tabindex="0" dir="auto" aria-label=${t("comment")}>${visible(this.comments)}</pre>` : nothing}
      <label class="sm md" for="reason-${this.name}"
        ><span class=${this.brief ? "desk-only" : ""}
          >${this.agent && this.carries ? ask("whatToKnow", visibleLine(this.agent, 60)) : t("reasonHint")}</span
        >${this.brief ? html`<span class="phone-only">${this.brief}</span>` : nothing}</label
      >
      <textarea
        id="reason-${this.name}"
        class="field"
        rows="2"
        dir="auto"
        maxlength="12000"
        ?readonly=${this.isBusy}
        @keydown=${this.#press}
        @input=${() => {
          this.hasWords = this.field.value.trim() !== "";
        }}
      ></textarea>
      <p class="xs t2 ${this.brief ? "desk-only" : ""}">${this.note}</p>
      <div class="row">
        ${this.carries || !navigator.clipboard ? nothing : html`<button type="button" class="b" @click=${() => void this.#copy()}>${t(this.isCopied ? "copied" : "copy")}</button>`}
        <button class="b primary" ?disabled=${this.isOff || this.isBusy}>
          ${this.isBusy ? t("sending") : this.#words} <kbd>↵</kbd>
        </button>
        ${
          this.comments
            ? nothing
            : html`<button
                type="button"
                class="b ${this.brief ? "desk-only" : ""}"
                ?disabled=${this.isOff || this.isBusy}
                @click=${this.#without}
              >
                ${ask("rejectWithout")}
              </button>`
        }
        <button type="button" class="b quiet" ?disabled=${this.isBusy} @click=${this.#close}>
          <span class="desk-only">${t("close")}</span><span class="phone-only">${t("back")}</span> <kbd>esc</kbd>
        </button>
      </div>
    </form>`;
  }

  get #canBeBare(): boolean {
    return this.brief !== "" && this.#phone.isPhone;
  }

  /** What sending does: on a phone a rejection without words goes this way, too. */
  get #words(): string {
    const isBare = this.#canBeBare && !this.hasWords && !this.comments;
    return t(this.carries && !isBare ? "rejectWith" : "reject");
  }

  async #copy(): Promise<void> {
    await navigator.clipboard.writeText([this.field.value.trim(), this.comments].filter(Boolean).join("\n\n"));
    this.isCopied = true;
  }

  #press = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && !isComposing(event)) this.#close();
    else if (isEnter(event) && !event.shiftKey) this.#send(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #without = (): void => {
    this.dispatchEvent(new CustomEvent("told", { detail: "" }));
  };

  #close = (): void => {
    this.dispatchEvent(new CustomEvent("closed"));
  };

  #send = (event: Event): void => {
    event.preventDefault();
    const words = this.field.value.trim();
    if ((words || this.comments || this.#canBeBare) && !this.isBusy && !this.isOff)
      this.dispatchEvent(new CustomEvent("told", { detail: words }));
  };
}
