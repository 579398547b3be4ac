// The line at the foot of the page: the connection and the keys of what is shown; its folder, model, tokens and price.

import { html, nothing } from "lit";
import { visibleLine } from "../text/safe.ts";
import { numeral } from "../language.ts";
import { t } from "../words.ts";
import type { Figures, Today } from "./figures.ts";
import { f } from "./words.ts";

export interface Status {
  isReached: boolean;
  /** Whether the server has a newer page than this one. */
  isOld: boolean;
  /** The keys of what is shown. */
  keys: string;
  figures: Figures | undefined;
  /** What was used today, for a page without figures of its own. */
  today: Today | undefined;
  /** Name and version of the agent, for a page without figures. */
  agent: string;
  showKeys: () => void;
}

/** Return tokens and price in words; what is not known is said, and never 0. */
export function usedText({ figures, today }: Pick<Status, "figures" | "today">): string {
  if (figures)
    return figures.tokens === undefined
      ? figures.cost
      : f("figure", numeral(figures.tokens), figures.cost || f("priceUnknown"));
  return today?.tokens ? f("figureToday", numeral(today.tokens), today.cost || f("priceUnknown")) : "";
}

export function statusLine(status: Status) {
  const { isReached, isOld, keys, figures, agent } = status;
  const used = usedText(status);
  return html`<footer class="status">
    <span class="row" role="status" title=${isReached ? nothing : t("offline")}
      ><span class=${isReached ? "live" : "lost"}></span
      ><span class=${isReached ? "" : "warn"}>${isReached ? t("connected") : f("reconnects")}</span></span
    >
    ${isReached ? nothing : html`<span class="cut">${t("offline")}</span>`}
    ${isOld ? html`<button class="b small" @click=${() => location.reload()}>${t("newerPage")}</button>` : nothing}
    ${keys && isReached ? html`<span class="wide-only cut">${keys}</span>` : nothing}
    <span class="grow"></span>
    ${figures?.folder ? html`<span class="wide-only cut place" dir="auto">${visibleLine(figures.folder, 200)}</span>` : nothing}
    ${figures?.model ? html`<span class="wide-only cut" dir="auto">${visibleLine(figures.model, 60)}</span>` : nothing}
    ${used ? html`<span class="fixed">${used}</span>` : nothing}
    ${figures || used ? nothing : html`<span class="fixed">${agent}</span>`}
    <button class="b quiet small wide-only" @click=${status.showKeys}><kbd>?</kbd>${t("keys")}</button>
  </footer>`;
}
