import { html } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { icon } from "../../frame/icons.ts";
import { isComposing } from "../../frame/keys.ts";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Longest name that the server takes, in characters. */
const LONGEST = 200;

/** The title of a session, which can be renamed in its place; tells "renamed" with the new name. */
@customElement("isthmus-title")
export class SessionTitle extends PageElement {
  @property() name = "";
  /** Title from the first prompt, which an empty name brings back. */
  @property() given = "";
  @property({ type: Boolean }) canRename = false;
  @state() private isOpen = false;
  @query("input") private field: HTMLInputElement | null | undefined;

  /** Open the field. */
  async rename(): Promise<void> {
    if (!this.canRename) return;
    this.isOpen = true;
    await this.updateComplete;
    this.field?.select();
  }

  override render() {
    if (this.isOpen)
      return html`<form
        @submit=${(event: SubmitEvent) => {
          event.preventDefault();
          this.#end(true);
        }}
      >
        <input
          class="field"
          aria-label=${t("sessionName")}
          placeholder=${t("givenTitle", visibleLine(this.given, 60))}
          maxlength=${LONGEST}
          dir="auto"
          .value=${this.name}
          @keydown=${(event: KeyboardEvent) => {
            if (event.key !== "Escape" || isComposing(event)) return;
            event.preventDefault();
            this.#end(false);
          }}
          @blur=${() => this.#end(true)}
        />
      </form>`;
    return html`<h1 class="cut" dir="auto">${visibleLine(this.name, LONGEST)}</h1>
      ${
        this.canRename
          ? html`<button
              class="b small quiet icon wide-only"
              aria-label=${t("rename")}
              title="${t("rename")} (F2)"
              @click=${() => void this.rename()}
            >
              ${icon("edit")}
            </button>`
          : ""
      }`;
  }

  #end(isMeant: boolean): void {
    if (!this.isOpen) return;
    const name = (this.field?.value ?? "").trim();
    this.isOpen = false;
    if (isMeant && name !== this.name) this.dispatchEvent(new CustomEvent<string>("renamed", { detail: name }));
  }
}
