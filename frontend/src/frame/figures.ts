// The figures of what is shown, which a page tells the status line: its folder, model, tokens and price.

import { shownCost } from "../task/money.ts";
import { api } from "../server/session.ts";

export interface Figures {
  folder: string;
  model: string;
  /** Tokens that were used; undefined if that is not known. */
  tokens: number | undefined;
  /** What they cost; empty if that is not known. */
  cost: string;
}

const TOLD = "figures";
/** The use of today is asked for again after this time. */
const TODAY_MS = 60_000;

/** Tell the status line the figures of what is shown; undefined when it is left. */
export function tellFigures(figures: Figures | undefined): void {
  dispatchEvent(new CustomEvent(TOLD, { detail: figures }));
}

export function hearFigures(hear: (figures: Figures | undefined) => void): void {
  addEventListener(TOLD, (event) => hear((event as CustomEvent<Figures | undefined>).detail));
}

export interface Today {
  tokens: number;
  /** What is known of the cost; empty if nothing is. */
  cost: string;
}

/** What models have used today for all sessions of the user, asked for while the inbox is shown. */
export class TodaysUse {
  today: Today | undefined;
  #askedAt = -Infinity;

  constructor(private readonly changed: () => void) {}

  look(now: number): void {
    if (now - this.#askedAt < TODAY_MS) return;
    this.#askedAt = now;
    api<{ tokens?: number; cost?: number | null; currency?: string; isPart?: boolean }>("GET", "use").then(
      ({ tokens, cost, currency }) => {
        this.today = tokens === undefined ? undefined : { tokens, cost: shownCost(cost, currency) };
        this.changed();
      },
      () => undefined, // A server of an earlier version has no such figures.
    );
  }
}
