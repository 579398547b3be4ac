// What a page shows at an address that leads nowhere: what is not there, why that may be, and a way on.

import { html } from "lit";
import { MARK } from "./icons.ts";

/** Draw the page; `way` is where to go instead, with its words. */
export function nowhere(title: string, why: string, way: { path: string; words: string }) {
  return html`<main class="pane surface span">
    <div class="head"><h1>${title}</h1></div>
    <div class="nowhere">
      ${MARK}
      <p class="md" role="alert">${title}</p>
      <p class="t2">${why}</p>
      <a class="b" href=${way.path}>${way.words}</a>
    </div>
  </main>`;
}
