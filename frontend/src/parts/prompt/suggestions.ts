import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Completion, complete } from "../../client.ts";
import { isComposing } from "../../frame/keys.ts";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

const PAUSE_MS = 120;
const SHOWN = 8;

/** What a slash command, its argument or an `@` reference in a field can become, below the reader's keys. */
@customElement("isthmus-suggestions")
export class Suggestions extends PageElement {
  @property() contextId = "";
  @property() workspace = "";
  @property({ attribute: false }) field: HTMLTextAreaElement | undefined;
  @state() private found: Completion[] = [];
  @state() private at = -1;
  #timer = 0;
  #asked = "";

  /** Look for completions of what stands before the cursor. */
  look(): void {
    clearTimeout(this.#timer);
    const line = this.#line();
    if (!/^\/|(?:^|[\s([])@\S*$/.test(line)) {
      this.#show([]);
      return;
    }
    this.#timer = window.setTimeout(() => {
      this.#asked = line;
      complete(line, this.contextId, this.workspace)
        .then((found) => {
          if (this.#asked === this.#line()) this.#show(found.filter((item) => item.line !== line));
        })
        .catch(() => this.#show([]));
    }, PAUSE_MS);
  }

  /** Take a key of the field; return whether it was for the list. */
  press(event: KeyboardEvent): boolean {
    if (!this.found.length || isComposing(event)) return false;
    const shown = Math.min(this.found.length, SHOWN);
    if (event.key === "ArrowDown") this.at = (this.at + 1) % shown;
    else if (event.key === "ArrowUp") this.at = (this.at <= 0 ? shown : this.at) - 1;
    else if (event.key === "Escape") this.#show([]);
    else if (event.key === "Tab" || (event.key === "Enter" && this.at >= 0))
      this.#take(this.found[Math.max(0, this.at)]);
    else return false;
    event.preventDefault();
    return true;
  }

  override render() {
    if (!this.found.length) return nothing;
    const rest = this.found.length - SHOWN;
    return html`<ul id="suggestions" class="suggestions" role="listbox" aria-label=${t("suggestions")}>
      ${this.found.slice(0, SHOWN).map(
        (item, at) =>
          html`<li
            id="suggestion-${at}"
            role="option"
            aria-selected=${at === this.at}
            class=${at === this.at ? "on" : ""}
            @mousedown=${(event: MouseEvent) => {
              event.preventDefault();
              this.#take(item);
            }}
          >
            <code class="cut" dir="auto">${visibleLine(this.#shown(item.line), 120)}</code>
            <span class="t3 cut">${visibleLine(item.description, 120)}</span>
          </li>`,
      )}
      ${rest > 0 ? html`<li class="t3 xs" aria-hidden="true">+ ${rest}</li>` : nothing}
    </ul>`;
  }

  /** Tell screen readers which suggestion is chosen, although the focus stays in the field. */
  override updated(): void {
    const { field } = this;
    if (!field) return;
    const isOpen = this.found.length > 0;
    field.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) field.setAttribute("aria-controls", "suggestions");
    else field.removeAttribute("aria-controls");
    if (this.at >= 0) field.setAttribute("aria-activedescendant", `suggestion-${this.at}`);
    else field.removeAttribute("aria-activedescendant");
  }

  #line(): string {
    return this.field ? this.field.value.slice(0, this.field.selectionStart) : "";
  }

  /** Return the part of a completed line that its reader does not see already: a reference, or the whole command. */
  #shown(line: string): string {
    return line.startsWith("/") ? line : line.slice(line.lastIndexOf("@"));
  }

  #show(found: Completion[]): void {
    this.found = found;
    this.at = -1;
  }

  #take(item: Completion | undefined): void {
    const field = this.field;
    if (!item || !field) return;
    const rest = field.value.slice(field.selectionStart);
    const isOpen = item.line.endsWith("/");
    field.value = item.line + (isOpen || rest.startsWith(" ") ? "" : " ") + rest;
    const end = field.value.length - rest.length;
    field.setSelectionRange(end, end);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
    this.#show([]);
    this.look();
  }
}
