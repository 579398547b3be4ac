// The line at the foot of the page: the connection, the keys of what is shown, and the agent.

import { html, nothing } from "lit";
import { t } from "../words.ts";

export interface Status {
  isReached: boolean;
  /** Whether the server has a newer page than this one. */
  isOld: boolean;
  /** The keys of what is shown. */
  keys: string;
  /** Name and version of the agent. */
  agent: string;
  showKeys: () => void;
}

export function statusLine({ isReached, isOld, keys, agent, showKeys }: Status) {
  return html`<footer class="status">
    <span class="row" role="status"
      ><span class=${isReached ? "live" : "lost"}></span>${t(isReached ? "connected" : "offline")}</span
    >
    ${isOld ? html`<button class="b small" @click=${() => location.reload()}>${t("newerPage")}</button>` : nothing}
    ${keys ? html`<span class="wide-only cut">${keys}</span>` : nothing}
    <span class="grow"></span><span>${agent}</span>
    <button class="b quiet small wide-only" @click=${showKeys}><kbd>?</kbd>${t("keys")}</button>
  </footer>`;
}
