import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../../frame/icons.ts";
import { visibleLine } from "../../text/safe.ts";
import type { Change, Queued } from "../../server/sessions.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** The messages that wait on the server until the turn has ended; until then each can be changed. Tells "changing". */
@customElement("isthmus-queued")
export class QueuedMessages extends PageElement {
  @property({ attribute: false }) messages: readonly Queued[] = [];
  /** Whether they are not sent by themselves, because the turn did not end well. */
  @property({ type: Boolean }) isHeld = false;
  @property({ type: Boolean }) isBusy = false;
  @state() private editing = "";

  override render() {
    const problem = this.messages[0]?.problem;
    return html`<div class="queued" role="group" aria-label=${t("queued")}>
      <p class="xs t2">
        ${problem ? t("notSentBecause", visibleLine(problem, 300)) : t(this.isHeld ? "waitsForYou" : "waitsHere")}
      </p>
      <ul>
        ${this.messages.map((message, at) => this.#row(message, at, this.isHeld || !!problem))}
      </ul>
    </div>`;
  }

  #row(message: Queued, at: number, isHeld: boolean) {
    const name = visibleLine(message.text, 60);
    if (this.editing === message.id)
      return html`<li>
        <form
          class="grow row"
          @submit=${(event: SubmitEvent) => {
            event.preventDefault();
            const text = ((new FormData(event.target as HTMLFormElement).get("text") as string) ?? "").trim();
            this.editing = "";
            if (text && text !== message.text) this.#tell({ do: "edit", id: message.id, text });
          }}
        >
          <textarea
            class="field grow"
            name="text"
            rows="2"
            dir="auto"
            aria-label=${t("edit")}
            .value=${message.text}
          ></textarea>
          <button class="b small primary">${t("save")}</button>
        </form>
      </li>`;
    return html`<li>
      <span class="grow cut" dir="auto"
        >${visibleLine(message.text, 300)}${message.images.length ? html` <span class="t3">${message.images.map((image) => visibleLine(image, 60)).join(", ")}</span>` : nothing}</span
      >
      ${isHeld && at === 0 ? html`<button class="b small" ?disabled=${this.isBusy} @click=${() => this.#tell({ do: "send", id: message.id })}>${t("sendNow")}</button>` : nothing}
      ${
        at > 0
          ? html`<button
              class="b small quiet icon"
              ?disabled=${this.isBusy}
              aria-label="${t("sendFirst")}: ${name}"
              title=${t("sendFirst")}
              @click=${() => this.#tell({ do: "first", id: message.id })}
            >
              ${icon("up")}
            </button>`
          : nothing
      }
      <button
        class="b small quiet icon"
        ?disabled=${this.isBusy}
        aria-label="${t("edit")}: ${name}"
        title=${t("edit")}
        @click=${() => {
          this.editing = message.id;
        }}
      >
        ${icon("edit")}
      </button>
      <button
        class="b small quiet"
        ?disabled=${this.isBusy}
        aria-label="${t("remove")}: ${name}"
        @click=${() => this.#tell({ do: "remove", id: message.id })}
      >
        ${t("remove")}
      </button>
    </li>`;
  }

  #tell(change: Change): void {
    this.dispatchEvent(new CustomEvent<Change>("changing", { detail: change }));
  }
}
