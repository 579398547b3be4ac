import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Icon, icon } from "../frame/icons.ts";
import { phoneWord } from "../phone/words.ts";
import { PageElement } from "./base.ts";

/** A row of the menu: a link, or something to do. */
export interface MenuRow {
  icon: Icon;
  words: string;
  /** How far it goes. */
  note: string;
  href?: string;
  act?: () => void;
  isOff?: boolean;
  /** Whether the menu stays open, because the row says what was done. */
  stays?: boolean;
}

/** The button for further answers and actions of a question, and the menu that it opens at the lower border. */
@customElement("isthmus-more")
export class MoreMenu extends PageElement {
  /** Return the rows, as they are when the menu is drawn. */
  @property({ attribute: false }) rows: () => readonly MenuRow[] = () => [];
  /** What can be done without the menu; empty if nothing can. */
  @property() note = "";
  /** What the rows are about: the menu closes when it changes. */
  @property() subject = "";
  @property({ type: Number }) version = 0;
  @state() private isOpen = false;

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("subject")) this.isOpen = false;
  }

  override render() {
    return html`<button
        class="tap"
        aria-label=${phoneWord("moreActions")}
        aria-haspopup="dialog"
        @click=${() => {
          this.isOpen = true;
        }}
      >
        ${icon("more")}
      </button>
      ${this.isOpen ? this.#menu() : nothing}`;
  }

  override updated(): void {
    const dialog = this.querySelector("dialog");
    if (!dialog || dialog.open) return;
    dialog.showModal();
    // The dialog itself is what lies around its content.
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) this.#close();
    });
  }

  #menu() {
    return html`<dialog
      class="menu"
      aria-label=${phoneWord("moreActions")}
      @close=${() => {
        this.isOpen = false;
      }}
    >
      <ul>
        ${this.rows().map((row) => html`<li>${this.#row(row)}</li>`)}
      </ul>
      ${this.note ? html`<p class="note">${this.note}</p>` : nothing}
    </dialog>`;
  }

  #row(row: MenuRow) {
    const content = html`${icon(row.icon)}<span>${row.words}</span>${row.note ? html`<small>${row.note}</small>` : nothing}`;
    if (row.href) return html`<a href=${row.href} @click=${this.#close}>${content}</a>`;
    return html`<button
      ?disabled=${row.isOff ?? false}
      @click=${() => {
        if (!row.stays) this.#close();
        row.act?.();
        if (row.stays) this.requestUpdate();
      }}
    >
      ${content}
    </button>`;
  }

  /** The focus goes back to the button, and from there to where an action puts it. */
  #close = (): void => {
    this.querySelector("dialog")?.close();
    this.isOpen = false;
  };
}
