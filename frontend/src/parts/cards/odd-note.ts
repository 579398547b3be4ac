// The line above a change that says what is odd in it, each with the way there.

import { html, nothing } from "lit";
import type { Odd } from "../../diff/odd.ts";
import { icon } from "../../frame/icons.ts";
import { exactLine } from "../../text/safe.ts";
import { LANGUAGE } from "../../language.ts";
import { t } from "../../words.ts";
import "../../styles/diff.css";

/** Return the note about what is odd; `show` goes to one of it. */
export function oddNote(found: readonly Odd[], show: (odd: Odd) => void) {
  if (!found.length) return nothing;
  return html`<ul class="odd" aria-label=${t("oddHere")}>
    ${found.map(
      (odd) =>
        html`<li>
          ${icon("warn")}<span class="grow" dir="auto">${textOf(odd)}</span>
          <button class="b small quiet" @click=${() => show(odd)}>${t("showPlace")}</button>
        </li>`,
    )}
  </ul>`;
}

function textOf(odd: Odd): string {
  const line = odd.line.toLocaleString(LANGUAGE);
  switch (odd.is) {
    case "host":
      return t("oddHost", line, exactLine(odd.host, 120), odd.before.map((host) => exactLine(host, 80)).join(", "));
    case "script":
      return t("oddScript", exactLine(odd.program, 80));
    case "hidden":
      return t(odd.count === 1 ? "oddHiddenOne" : "oddHidden", line, odd.count.toLocaleString(LANGUAGE));
  }
}
