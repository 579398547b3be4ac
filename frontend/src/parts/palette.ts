import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { type Action, found, keyActions, pageActions, sessionAction } from "../frame/actions.ts";
import type { Has, KeyPlace } from "../frame/key-table.ts";
import { f } from "../frame/words.ts";
import { icon, stateMark } from "../frame/icons.ts";
import { isComposing, isEnter } from "../frame/keys.ts";
import { type SessionFacts, listSessions, taskStateOf } from "../server/sessions.ts";
import { PageElement, go } from "./base.ts";

/** Typing is not searched for on the server before this pause. */
const PAUSE_MS = 150;
/** Maximum number of actions that are shown. */
const SHOWN = 50;

/** All actions and places in a dialog, filtered as one types; sessions are also searched on the server. Tells "closed". */
@customElement("isthmus-palette")
export class Palette extends PageElement {
  @property({ attribute: false }) has!: Has;
  @property({ attribute: false }) places: readonly KeyPlace[] = [];
  @property({ type: Boolean }) isOwner = false;
  /** Id of the companion whose writes wait to be looked at. */
  @property() written = "";
  @property({ attribute: false }) sessions: readonly SessionFacts[] = [];
  @state() private typed = "";
  @state() private at = 0;
  @state() private further: readonly SessionFacts[] = [];
  @query("dialog") private dialog!: HTMLDialogElement;
  #timer = 0;

  override firstUpdated(): void {
    this.dialog.showModal();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  override render() {
    const shown = this.#shown();
    return html`<dialog
      class="palette"
      aria-label=${f("actions")}
      @close=${() => this.dispatchEvent(new Event("closed"))}
    >
      <div class="in">
        <label class="row"
          >${icon("search")}<input
            class="grow"
            role="combobox"
            aria-label=${f("actions")}
            aria-expanded="true"
            aria-controls="actions"
            aria-activedescendant=${shown.length ? `action-${this.at}` : nothing}
            aria-autocomplete="list"
            autocomplete="off"
            spellcheck="false"
            maxlength="200"
            placeholder=${f("actionsHint")}
            @input=${this.#type}
            @keydown=${this.#press}
          /><kbd>esc</kbd></label
        >
        <ul id="actions" role="listbox" aria-label=${f("actions")}>
          ${shown.map((action, at) => this.#option(action, at))}
        </ul>
        ${shown.length ? nothing : html`<p class="t2 sm" role="status">${f("noAction")}</p>`}
      </div>
    </dialog>`;
  }

  #option(action: Action, at: number) {
    const isOn = at === this.at;
    return html`<li
      id="action-${at}"
      role="option"
      aria-selected=${isOn}
      class=${isOn ? "on" : ""}
      @mousedown=${(event: MouseEvent) => {
        event.preventDefault();
        this.#take(action);
      }}
    >
      ${action.session ? stateMark(taskStateOf(action.session)) : icon(action.symbol)}
      <span class="cut" dir="auto">${action.name}</span>
      <span class="t3 xs cut grow" dir="auto">${action.hint}</span>
      ${action.shown ? html`<kbd>${action.shown}</kbd>` : nothing}
    </li>`;
  }

  #shown(): Action[] {
    const known = new Set(this.sessions.map(({ contextId }) => contextId));
    const further = this.typed.trim() ? this.further.filter(({ contextId }) => !known.has(contextId)) : [];
    const actions = [
      ...pageActions(this.has, this.isOwner, this.written),
      ...keyActions(this.places, this.has),
      ...this.sessions.map(sessionAction),
    ];
    return [...found(actions, this.typed), ...further.map(sessionAction)].slice(0, SHOWN);
  }

  #type = (event: Event): void => {
    this.typed = (event.target as HTMLInputElement).value;
    this.at = 0;
    clearTimeout(this.#timer);
    if (!this.has.tasks || !this.typed.trim()) return;
    this.#timer = window.setTimeout(() => void this.#search(this.typed.trim()), PAUSE_MS);
  };

  async #search(words: string): Promise<void> {
    const page = await listSessions({ words }).catch(() => undefined);
    if (page && words === this.typed.trim()) this.further = page.sessions;
  }

  #press = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    const shown = this.#shown();
    const { length } = shown;
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    const step = steps[event.key];
    const action = shown[this.at];
    if (step && length)
      this.at = Math.abs(step) === 1 ? (this.at + step + length) % length : clamp(this.at + step, length);
    else if (isEnter(event)) {
      if (action) this.#take(action);
    } else return;
    event.preventDefault();
    void this.updateComplete.then(() => this.querySelector("li.on")?.scrollIntoView({ block: "nearest" }));
  };

  #take({ path, key }: Action): void {
    this.dialog.close();
    if (path !== undefined) go(path);
    // The dialog has been closed: the page takes the key as if it was pressed.
    else if (key) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  }
}

function clamp(at: number, length: number): number {
  return Math.max(0, Math.min(length - 1, at));
}
