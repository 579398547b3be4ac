import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { complete } from "../../client.ts";
import { icon } from "../../frame/icons.ts";
import { isComposing } from "../../frame/keys.ts";
import { f } from "../../frame/words.ts";
import { shownCost } from "../../task/money.ts";
import { visibleLine } from "../../text/safe.ts";
import { api } from "../../server/session.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

const COMMAND = "/model ";
const PAUSE_MS = 120;
/** Maximum number of models whose prices are asked for at once. */
const MAXIMUM_PRICES = 100;

/** US dollars for a million tokens, by model; null where no price is known. */
type Prices = Readonly<Record<string, { input: number; output: number } | null>>;

/** Return the price of a model in words; empty until it is asked for. */
export function priceText(prices: Prices, name: string): string {
  if (!Object.hasOwn(prices, name)) return "";
  const price = prices[name];
  if (!price) return f("priceUnknown");
  return f("priceOf", shownCost(price.input, "USD"), shownCost(price.output, "USD"));
}

/** The model of the next message: a button with its name, and a list of those that the server reaches, with a search. */
@customElement("isthmus-model")
export class ModelPick extends PageElement {
  @property() contextId = "";
  @property() workspace = "";
  /** The model in force. */
  @property() current = "";
  /** The model that the user chose; empty for the one in force. */
  @property() chosen = "";
  @state() private isOpen = false;
  @state() private found: readonly string[] = [];
  /** Prices by model; a model that is not in it was not asked for, or the server does not say. */
  @state() private prices: Prices = {};
  @state() private isAsking = false;
  @state() private at = 0;
  @query("input") private field: HTMLInputElement | null | undefined;
  @query("button") private button!: HTMLButtonElement;
  #sought = "";
  #timer = 0;

  override render() {
    const shown = this.chosen || this.current;
    return html`<button
        type="button"
        class="pick ${this.chosen && this.chosen !== this.current ? "changed" : ""}"
        aria-haspopup="listbox"
        aria-expanded=${this.isOpen}
        title=${t("model")}
        @click=${() => {
          if (this.isOpen) this.#close();
          else void this.open();
        }}
      >
        <span class="vh">${t("model")}: </span
        ><span class="cut" dir="auto">${visibleLine(shown, 60)}</span>${icon("down")}
      </button>
      ${
        this.isOpen
          ? html`<div class="suggestions models" @focusout=${this.#left}>
              <input
                class="field"
                role="combobox"
                aria-expanded="true"
                aria-controls="models"
                aria-label=${t("modelSearch")}
                placeholder=${t("modelSearch")}
                spellcheck="false"
                autocomplete="off"
                aria-activedescendant="model-${this.at}"
                @input=${this.#type}
                @keydown=${this.#press}
              />
              <ul id="models" role="listbox" aria-label=${t("model")}>
                ${this.#names.map(
                  (name, at) =>
                    html`<li
                      id="model-${at}"
                      role="option"
                      aria-selected=${at === this.at}
                      class=${at === this.at ? "on" : ""}
                      @mousedown=${(event: MouseEvent) => {
                        event.preventDefault();
                        this.#take(name);
                      }}
                    >
                      <code class="cut" dir="auto">${visibleLine(name, 120)}</code>
                      ${name === this.current ? html`<span class="t3">${t("modelNow")}</span>` : nothing}
                      <span class="t3 xs num right">${priceText(this.prices, name)}</span>
                    </li>`,
                )}
              </ul>
              ${this.isAsking ? html`<p class="t3 xs" role="status">${t("modelAsking")}</p>` : nothing}
            </div>`
          : nothing
      }`;
  }

  /** What can be chosen: what was found, and whatever was typed, since any model may be named. */
  get #names(): readonly string[] {
    return this.#sought && !this.found.includes(this.#sought) ? [...this.found, this.#sought] : this.found;
  }

  async open(): Promise<void> {
    this.isOpen = true;
    this.#sought = "";
    this.#ask();
    await this.updateComplete;
    this.field?.focus();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.isOpen = false;
  }

  #ask(): void {
    const sought = this.#sought;
    this.isAsking = true;
    void complete(COMMAND + sought, this.contextId, this.workspace)
      .then(
        (found) => found.filter(({ line }) => line.startsWith(COMMAND)),
        () => [],
      )
      .then((found) => {
        if (sought !== this.#sought) return;
        this.isAsking = false;
        this.found = found.map(({ line }) => line.slice(COMMAND.length).trim()).filter(Boolean);
        this.at = Math.max(0, this.found.indexOf(this.chosen || this.current));
        void this.updateComplete.then(() => this.#show());
        this.#price();
      });
  }

  /** Ask for the prices of the models that are shown and not known yet. */
  #price(): void {
    const models = this.#names.filter((name) => !(name in this.prices)).slice(0, MAXIMUM_PRICES);
    if (!models.length) return;
    api<{ prices: Prices }>("POST", "prices", { models }).then(
      ({ prices }) => {
        this.prices = { ...this.prices, ...prices };
      },
      () => undefined, // A user of the server is not told them.
    );
  }

  #type = (): void => {
    this.#sought = this.field?.value.trim() ?? "";
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#ask(), PAUSE_MS);
  };

  #press = (event: KeyboardEvent): void => {
    if (isComposing(event)) return;
    const { length } = this.#names;
    const name = this.#names[this.at];
    if (event.key === "ArrowDown" && length) this.at = (this.at + 1) % length;
    else if (event.key === "ArrowUp" && length) this.at = (this.at + length - 1) % length;
    else if (event.key === "Enter") {
      if (name && !this.isAsking) this.#take(name);
    } else if (event.key === "Escape") {
      this.#close();
      this.button.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
    void this.updateComplete.then(() => this.#show());
  };

  #show(): void {
    this.querySelector("li.on")?.scrollIntoView({ block: "nearest" });
  }

  #left = (event: FocusEvent): void => {
    if (!(event.relatedTarget instanceof Node && this.contains(event.relatedTarget))) this.#close();
  };

  #take(name: string): void {
    this.#close();
    this.button.focus();
    this.dispatchEvent(new CustomEvent<string>("chosen", { detail: name === this.current ? "" : name }));
  }
}
