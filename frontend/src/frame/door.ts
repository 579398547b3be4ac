// What a browser sees that is not let in yet: the field for a code.

import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { MARK } from "./icons.ts";
import { t } from "../words.ts";
import type { Access } from "./access.ts";
import { deviceFacts, isThisMachine } from "./device-facts.ts";
import { CODE_LENGTH, signsOf, toGo } from "./code.ts";
import { f } from "./words.ts";
import { PageElement } from "../parts/base.ts";
import { codeText } from "../parts/code-text.ts";
import "../styles/door.css";

export function door(access: Access) {
  if (!access.isRefused)
    return html`<div class="door">
      <p role="status">${access.problem || t(access.isPairing ? "pairing" : "connecting")}</p>
    </div>`;
  return html`<isthmus-door
    .access=${access}
    .problem=${access.problem}
    ?isPairing=${access.isPairing}
  ></isthmus-door>`;
}

/** Return who answers, and whether others can read what is sent. */
function connectionText({ protocol, hostname, host }: Location): string {
  if (protocol === "https:") return f("answersOverTls", host);
  return f(isThisMachine(hostname) ? "answersHere" : "answersPlain", host);
}

/** The form for a code: a field whose signs are shown in cells, what the browser may do then, and one button. */
@customElement("isthmus-door")
export class Door extends PageElement {
  @property({ attribute: false }) access!: Access;
  @property() problem = "";
  @property({ type: Boolean }) isPairing = false;
  @state() private code = "";

  override render() {
    const rest = toGo(this.code);
    return html`<main class="door">
      <form @submit=${this.#submit}>
        <div class="mark-big">${MARK}</div>
        <h1>${t("pairTitle")}</h1>
        <p class="t2">${codeText(t("pairText"))}</p>
        ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing} ${this.#field()}
        <p class="row t2 by-what">
          <span class=${location.protocol === "https:" ? "live" : "dot"}></span>${connectionText(location)}
        </p>
        ${deviceFacts()}
        <div class="do">
          <button class="b primary" aria-describedby="to-go" ?disabled=${this.isPairing || rest > 0}>
            ${t(this.isPairing ? "pairing" : "letIn")}
          </button>
          <p class="xs t3" id="to-go">${rest ? f(rest === 1 ? "oneSignToGo" : "signsToGo", rest) : nothing}</p>
        </div>
      </form>
    </main>`;
  }

  /** One field over the cells: it takes a code that is typed, pasted or filled in by the system. */
  #field() {
    const signs = signsOf(this.code);
    const cell = (at: number) =>
      html`<span class="sign ${at === Math.min(signs.length, CODE_LENGTH - 1) ? "at" : ""}">${signs[at] ?? ""}</span>`;
    const half = CODE_LENGTH / 2;
    const places = [...Array(CODE_LENGTH).keys()];
    return html`<label class="cells"
      ><span class="vh">${t("code")}</span>
      <span aria-hidden="true"
        >${places.slice(0, half).map(cell)}<span class="t3">–</span>${places.slice(half).map(cell)}</span
      >
      <input
        class="code"
        name="code"
        required
        autocomplete="one-time-code"
        autocapitalize="characters"
        spellcheck="false"
        maxlength="60"
        @input=${(event: Event) => {
          this.code = (event.target as HTMLInputElement).value;
        }}
    /></label>`;
  }

  #submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void this.access.pair(this.code);
  };
}
