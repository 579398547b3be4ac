// What a browser sees that is not let in yet: the field for a code.

import { html, nothing } from "lit";
import { MARK } from "./icons.ts";
import { t } from "../words.ts";
import type { Access } from "./access.ts";
import { codeText } from "../parts/code-text.ts";

export function door(access: Access) {
  if (!access.isRefused)
    return html`<div class="door">
      <p role="status">${access.problem || t(access.isPairing ? "pairing" : "connecting")}</p>
    </div>`;
  return html`<main class="door">
    <form
      @submit=${(event: SubmitEvent) => {
        event.preventDefault();
        void access.pair((new FormData(event.target as HTMLFormElement).get("code") as string) ?? "");
      }}
    >
      <p class="brand">${MARK}Isthmus</p>
      <h1>${t("pairTitle")}</h1>
      <p class="t2">${codeText(t("pairText"))}</p>
      ${access.problem ? html`<p class="problem" role="alert">${access.problem}</p>` : nothing}
      <label
        >${t("code")}
        <input
          class="field code"
          name="code"
          required
          autocomplete="one-time-code"
          autocapitalize="characters"
          spellcheck="false"
          maxlength="60"
      /></label>
      <button class="b primary" ?disabled=${access.isPairing}>${t(access.isPairing ? "pairing" : "letIn")}</button>
    </form>
  </main>`;
}
