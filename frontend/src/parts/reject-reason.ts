import { html } from "lit";
import { customElement, property, query } from "lit/decorators.js";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

/** A field for the words of a rejection. It sends nothing: `told` has the words, `closed` gives them up. */
@customElement("isthmus-reason")
export class RejectReason extends PageElement {
  @property() name = "";
  /** What sending does beside the rejection. */
  @property() note = "";
  @property({ type: Boolean }) isBusy = false;
  @property({ type: Boolean }) isOff = false;
  @query("textarea") private field!: HTMLTextAreaElement;

  override firstUpdated(): void {
    this.field.focus();
  }

  override render() {
    return html`<form class="reason" @submit=${this.#send}>
      <label class="sm md" for="reason-${this.name}">${t("reasonHint")}</label>
      <textarea id="reason-${this.name}" class="field" rows="2" dir="auto" required maxlength="20000" ?readonly=${this.isBusy} @keydown=${this.#press}></textarea>
      <p class="xs t2">${this.note}</p>
      <div class="row"><button class="b primary" ?disabled=${this.isOff || this.isBusy}>${this.isBusy ? t("sending") : t("rejectWith")} <kbd>↵</kbd></button>
        <button type="button" class="b quiet" ?disabled=${this.isBusy} @click=${this.#close}>${t("close")} <kbd>esc</kbd></button></div>
    </form>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (event.key === "Escape") this.#close();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.#send(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #close = (): void => {
    this.dispatchEvent(new CustomEvent("closed"));
  };

  #send = (event: Event): void => {
    event.preventDefault();
    const words = this.field.value.trim();
    if (words && !this.isBusy && !this.isOff) this.dispatchEvent(new CustomEvent("told", { detail: words }));
  };
}
