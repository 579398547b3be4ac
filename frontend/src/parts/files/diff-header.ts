// The line above a diff: which file, how much of it changes in how many places, and its tools.

import { html, nothing } from "lit";
import { icon } from "../../frame/icons.ts";
import "../cards/lines-below.ts";
import { t } from "../../words.ts";

/** Return a path with its folder set back. */
export function shownFile(path: string) {
  const name = path.lastIndexOf("/") + 1;
  return html`<code class="path" dir="auto"
    ><span class="t3 cut">${path.slice(0, name)}</span><span class="cut">${path.slice(name)}</span></code
  >`;
}

/** Return the line above a diff; it stays in view while the diff scrolls. */
export function diffHeader(path: string, counts: unknown, hunks: number, tools: unknown) {
  return html`<div class="dhead">
    ${icon("file")}${shownFile(path)} ${counts}
    ${hunks > 1 ? html`<span class="xs t3 num hunks">${t("hunks", hunks)}</span>` : nothing}
    <isthmus-below></isthmus-below>
    <span class="right row">${tools}</span>
  </div>`;
}

/** Return the switch between one column and two. */
export function sidesSwitch(isSides: boolean, toggle: () => void) {
  return html`<button class="b small quiet wide-only desk-only" aria-pressed=${isSides} @click=${toggle}>
    ${icon("sides")}<span class="named-only">${t("sideBySide")}</span> <kbd>v</kbd>
  </button>`;
}
