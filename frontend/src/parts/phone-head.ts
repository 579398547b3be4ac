// The head of a question on a phone, where a question is a page of its own: back, what is asked, who asks, further actions.

import { html, nothing } from "lit";
import { icon } from "../frame/icons.ts";
import { phoneWord } from "../phone/words.ts";

export interface SheetLines {
  title: string;
  /** Who asks, and where. */
  place: string;
  /** How long it has waited; empty if it does not wait any more. */
  age: string;
}

/** Return the head; `more` stands at its right. */
export function sheetHead({ title, place, age }: SheetLines, back: () => void, more: unknown) {
  return html`<header class="sheet-head">
    <button class="tap" aria-label=${phoneWord("backToInbox")} @click=${back}>${icon("back")}</button>
    <div class="grow">
      <h1 class="cut" tabindex="-1" dir="auto">${title}</h1>
      <p class="xs t3 row">
        <span class="cut" dir="auto">${place}</span>${age ? html`<span class="age">· ${age}</span>` : nothing}
      </p>
    </div>
    ${more}
  </header>`;
}
