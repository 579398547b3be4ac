// Figures of a session: how full its context is, of what, and what it has cost. What is not known is said, and never 0.

import { html, nothing, svg } from "lit";
import type { SessionStatus } from "../client.ts";
import { shownCost } from "../task/money.ts";
import type { Usage } from "../server/protocol.ts";
import { visibleLine } from "../text/safe.ts";
import { numeral } from "../language.ts";
import { t } from "../words.ts";
import { f } from "./words.ts";

/** Models without a price that are named. */
const NAMED = 3;

/** Return a share in percent, as text: "4 %", "<1 %". */
export function percent(part: number, whole: number): string {
  const share = (100 * part) / whole;
  return share > 0 && share < 1 ? "<1 %" : `${Math.round(share)} %`;
}

/** Return the beginnings and widths in percent of the parts of a bar; each part that is not empty can be seen. */
export function barParts(parts: readonly number[], whole: number): { x: number; width: number }[] {
  const least = 1;
  let x = 0;
  return parts.map((part) => {
    const width = part ? Math.max(least, (100 * part) / whole) : 0;
    const found = { x: Math.min(x, 100), width: Math.min(width, Math.max(0, 100 - x)) };
    x += width;
    return found;
  });
}

export function contextFigures(status: SessionStatus | undefined) {
  const { tokens, window = 0, parts } = status ?? {};
  if (tokens === undefined) return nothing;
  const said = window ? f("contextOf", numeral(tokens), numeral(window)) : f("contextCount", numeral(tokens));
  const rows = parts
    ? ([
        [f("instructions"), parts.instructions],
        [f("contents"), parts.contents],
        [f("wordsOf"), parts.words],
      ] as const)
    : [];
  return html`<section>
    <h2>${f("contextTitle")}</h2>
    <p class="figure">
      ${window ? html`<span class="big">${percent(tokens, window)}</span>` : nothing}<span class="t3 num">${said}</span>
    </p>
    ${window ? bar(rows.length ? rows.map(([, count]) => count) : [tokens], window, said) : nothing}
    ${
      rows.length
        ? html`<dl class="kv" title=${f("estimated")}>
            ${rows.map(
              ([name, count], at) =>
                html`<dt><span class="key k${at + 1}"></span>${name}</dt>
                  <dd>${numeral(count)}</dd>`,
            )}
          </dl>`
        : nothing
    }
  </section>`;
}

/** The widths are attributes of a picture: the content policy refuses styles. */
function bar(parts: readonly number[], whole: number, label: string) {
  return html`<svg class="stack" role="img" aria-label="${f("contextTitle")}: ${label}" width="100%" height="8">
    ${barParts(parts, whole).map(({ x, width }, at) => svg`<rect class="k${at + 1}" x="${x}%" width="${width}%" height="8" />`)}
  </svg>`;
}

/** Return the tokens of a turn in words; none if it states none. */
function tokensOf({ input, cached, output, thought }: Usage): string[] {
  if (input + output === 0) return [];
  const read = cached ? `${numeral(cached)} (${percent(cached, input)})` : "";
  return [
    read ? t("tokensInCached", numeral(input), read) : t("tokensIn", numeral(input)),
    thought ? t("tokensOutThought", numeral(output), numeral(thought)) : t("tokensOut", numeral(output)),
  ];
}

export function costFigures(status: SessionStatus | undefined, turn: Usage) {
  const { cost = "", unpriced = [], costLimit = "", used } = status ?? {};
  if (!cost && !unpriced.length && !used && !tokensOf(turn).length) return nothing;
  const last = turn.cost > 0 ? shownCost(turn.cost, "USD") : "";
  // Of the session of a hosted agent the tokens are not known, but those of its last turn may be.
  const ofTurn = used ? [] : tokensOf(turn);
  const rows = [
    ...(used
      ? [
          [f("tokensIn"), numeral(used.input)],
          [f("tokensCached"), numeral(used.cached)],
          [f("tokensOut"), numeral(used.output)],
        ]
      : []),
    ...ofTurn.map((words, at) => [at ? "" : f("lastTurn"), words]),
    ...(last ? [[ofTurn.length ? "" : f("lastTurn"), turn.unpriced ? `${last} ${f("andMore")}` : last]] : []),
  ];
  const beside = [cost && unpriced.length ? f("andMore") : "", costLimit && f("ofAllowed", costLimit)];
  return html`<section>
    <h2>${f("sessionCost")}</h2>
    <p class="figure">
      <span class="big">${cost || f("costUnknown")}</span
      ><span class="t3 num">${beside.filter(Boolean).join(" ")}</span>
    </p>
    ${unpriced.length ? html`<p class="t3 xs" dir="auto">${f("noPrice", visibleLine(unpriced.slice(0, NAMED).join(", "), 200))}</p>` : nothing}
    <dl class="kv">
      ${rows.map(
        ([name, value]) =>
          html`<dt>${name}</dt>
            <dd>${value}</dd>`,
      )}
    </dl>
  </section>`;
}
