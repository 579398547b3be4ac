import { html } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Queued } from "../queue.ts";
import { visibleLine } from "../safe.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

/** The messages that wait until the task has ended; each can be removed until then. */
@customElement("isthmus-queued")
export class QueuedMessages extends PageElement {
  @property({ attribute: false }) messages: readonly Queued[] = [];
  /** Whether they are not sent by themselves, because the task did not end well. */
  @property({ type: Boolean }) isHeld = false;
  @property({ type: Boolean }) isBusy = false;

  override render() {
    return html`<div class="queued" role="group" aria-label=${t("queued")}>
      <p class="xs t2">${t(this.isHeld ? "waitsForYou" : "waitsHere")}</p>
      <ul>
        ${this.messages.map(
          (message, at) =>
            html`<li>
              <span class="grow cut" dir="auto"
                >${visibleLine(message.text, 300) || message.images.map((image) => visibleLine(image.name, 60)).join(", ")}</span
              >
              ${this.isHeld && at === 0 ? html`<button class="b small" ?disabled=${this.isBusy} @click=${() => this.#tell("sendnow", message)}>${t("sendNow")}</button>` : ""}
              <button
                class="b small quiet"
                ?disabled=${this.isBusy}
                aria-label="${t("remove")}: ${visibleLine(message.text, 60)}"
                @click=${() => this.#tell("removed", message)}
              >
                ${t("remove")}
              </button>
            </li>`,
        )}
      </ul>
    </div>`;
  }

  #tell(name: string, message: Queued): void {
    this.dispatchEvent(new CustomEvent<Queued>(name, { detail: message }));
  }
}
