// What stands in place of rows until they are loaded: empty plates, which appear only when that takes a while.

import { html } from "lit";

export function platesOf(count: number) {
  return Array.from(
    { length: count },
    () => html`<li class="item plate" aria-hidden="true"><span></span><span></span><span></span></li>`,
  );
}
