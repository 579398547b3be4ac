import { html } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../../frame/icons.ts";
import { phoneWord } from "../../phone/words.ts";
import { PageElement } from "../base.ts";

/** A fact with its name, such as what a call touches. */
export interface NamedFact {
  name: string;
  fact: unknown;
}

/** Return the first part of what an answer covers. */
export function shortLimit(covers: string): string {
  return covers.split(/[;,\uff0c\uff1b]/, 1)[0] ?? "";
}

/** The facts of a question. On a phone the first one is a line that opens the others. */
@customElement("isthmus-facts")
export class CardFacts extends PageElement {
  @property({ attribute: false }) facts: readonly NamedFact[] = [];
  /** What the facts are about: they are closed again for another question. */
  @property() subject = "";
  @state() private isOpen = false;

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("subject")) this.isOpen = false;
  }

  override render() {
    return html`<button
        class="one phone-only"
        aria-expanded=${this.isOpen}
        title=${phoneWord("showFacts")}
        @click=${() => {
          this.isOpen = !this.isOpen;
        }}
      >
        <span class="cut grow" dir="auto">${this.facts[0]?.fact}</span>${icon("down")}
      </button>
      <dl class="facts">
        ${this.facts.map(
          ({ name, fact }) =>
            html`<dt>${name}</dt>
              <dd dir="auto">${fact}</dd>`,
        )}
      </dl>`;
  }
}
