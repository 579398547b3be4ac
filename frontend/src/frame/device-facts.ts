// What a browser may do once it is paired, and until when: both ends of a pairing say it.

import { html } from "lit";
import { f } from "./words.ts";

export function deviceFacts() {
  return html`<dl class="facts">
    <dt>${f("willBeAble")}</dt>
    <dd>${f("deviceCan")}</dd>
    <dt>${f("untilTitle")}</dt>
    <dd>${f("deviceUntil")}</dd>
  </dl>`;
}

/** Whether a host is the machine of the browser, so that nothing of the connection leaves it. */
export function isThisMachine(hostname: string): boolean {
  return /^(localhost|.*\.localhost|127\..*|\[::1\])$/.test(hostname);
}
