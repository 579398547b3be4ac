// What a page shows until its content is there: empty plates, that the server is not reached, or why it failed.

import { html } from "lit";
import { f } from "../frame/words.ts";
import { t } from "../words.ts";
import "../styles/loading.css";

/** Return empty plates in place of rows; they appear only when loading takes a while. */
export function platesOf(count: number) {
  return Array.from(
    { length: count },
    () => html`<li class="item plate" aria-hidden="true"><span></span><span></span><span></span></li>`,
  );
}

/** Return what stands in place of rows while nothing is known: empty plates, or why nothing comes. */
export function loadingRows(isReached: boolean, notLoaded = f("notLoaded")) {
  if (!isReached)
    return html`<li class="empty" role="status">
      <p>${notLoaded}</p>
      <p class="t3">${f("triesAgain")}</p>
    </li>`;
  return platesOf(3);
}

/** Return why the content of a page was not loaded, with a button that tries again. */
export function failedToLoad(problem: string, again: () => void) {
  return html`<div class="not-loaded">
    <p class="problem" role="alert">${problem}</p>
    <button class="b small" @click=${again}>${t("tryAgain")}</button>
  </div>`;
}
