import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { tell } from "../client.ts";
import { visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

/** A field for words that are sent in place of an answer: the call is rejected, and the agent goes on with them. */
@customElement("isthmus-reason")
export class RejectReason extends PageElement {
  @property() taskId = "";
  @property() callId = "";
  @property() tool = "";
  @property({ type: Boolean }) isOff = false;
  @state() private isSending = false;
  @state() private problem = "";
  @query("textarea") private field!: HTMLTextAreaElement;

  override firstUpdated(): void {
    this.field.focus();
  }

  override render() {
    return html`<form class="reason" @submit=${this.#send}>
      ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
      <label class="sm md" for="reason-${this.callId}">${t("reasonHint")}</label>
      <textarea id="reason-${this.callId}" class="field" rows="2" dir="auto" required maxlength="20000" ?readonly=${this.isSending} @keydown=${this.#press}></textarea>
      <p class="xs t2">${t("reasonAll")}</p>
      <div class="row"><button class="b primary" ?disabled=${this.isOff || this.isSending}>${this.isSending ? t("sending") : t("rejectWith")} <kbd>↵</kbd></button>
        <button type="button" class="b quiet" ?disabled=${this.isSending} @click=${this.#close}>${t("close")} <kbd>esc</kbd></button></div>
    </form>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (event.key === "Escape") this.#close();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) void this.#send(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  #close = (): void => {
    this.dispatchEvent(new CustomEvent("closed"));
  };

  #send = async (event: Event): Promise<void> => {
    event.preventDefault();
    const words = this.field.value.trim();
    if (!words || this.isSending || this.isOff) return;
    this.isSending = true;
    this.problem = "";
    try {
      // The model reads it: in the words of the terminal, whatever the language of the page.
      const row = await tell(this.taskId, `I rejected the call of ${this.tool}. ${words}`);
      this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
    } catch (error) {
      this.isSending = false;
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    }
  };
}
