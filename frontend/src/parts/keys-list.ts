import { html } from "lit";
import { customElement, property } from "lit/decorators.js";
import { type Has, type KeyPlace, type KeyRow, keysWith, shownKeys } from "../frame/key-table.ts";
import { type FrameWord, f } from "../frame/words.ts";
import { hasLetters, sendKey, setLetters } from "../frame/keys.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

const PLACES: Record<KeyPlace, FrameWord> = {
  everywhere: "everywhere",
  inbox: "inInbox",
  question: "inQuestion",
  edit: "inEdit",
  "files of one": "inFilesOfOne",
  session: "inSession",
  changes: "inChanges",
  history: "inHistory",
  files: "inFiles",
  written: "inWritten",
};

/** The list of all keys, in a dialog, by the places where they mean something; tells "closed". */
@customElement("isthmus-keys")
export class KeysList extends PageElement {
  @property({ attribute: false }) has!: Has;

  override firstUpdated(): void {
    this.querySelector("dialog")?.showModal();
  }

  override render() {
    const rows = keysWith(this.has);
    const places = new Set(rows.map((row) => row.at));
    return html`<dialog
      class="sheet"
      aria-label=${t("keysList")}
      @close=${() => this.dispatchEvent(new Event("closed"))}
    >
      <h2>${t("keysList")}</h2>
      <dl class="facts">
        <dt><kbd>${/Mac|iPhone|iPad/.test(navigator.userAgent) ? "\u2318 K" : "Ctrl K"}</kbd></dt>
        <dd>${f("actions")}</dd>
        <dt><kbd>?</kbd></dt>
        <dd>${t("keysList")}</dd>
      </dl>
      ${[...places].map(
        (place) =>
          html`<section>
            <h3 class="xs md t3">${f(PLACES[place])}</h3>
            <dl class="facts">${rows.filter((row) => row.at === place).map((row) => this.#row(row))}</dl>
          </section>`,
      )}
      <label class="row sm"
        ><input
          type="checkbox"
          .checked=${hasLetters()}
          @change=${(event: Event) => setLetters((event.target as HTMLInputElement).checked)}
        />
        ${t("keyLetters")}</label
      >
      <form method="dialog"><button class="b">${t("close")}</button></form>
    </dialog>`;
  }

  #row(row: KeyRow) {
    return html`<dt><kbd>${shownKeys(row, sendKey())}</kbd></dt>
      <dd>${t(row.word)}</dd>`;
  }
}
