// A QR code as a drawing: dark modules as one path on a light ground, in every colour scheme.

import { html, type TemplateResult } from "lit";
import { t } from "../words.ts";

/** Width in modules of the light margin that a reader needs. */
const QUIET = 4;

/** Draw rows of 0 and 1. */
export function qrCode(rows: string[]): TemplateResult {
  const size = rows.length + 2 * QUIET;
  const path = rows
    .map((row, y) =>
      [...row.matchAll(/1+/g)]
        .map((run) => `M${run.index + QUIET} ${y + QUIET}h${run[0].length}v1h-${run[0].length}z`)
        .join(""),
    )
    .join("");
  return html`<svg
    class="qr"
    viewBox="0 0 ${size} ${size}"
    role="img"
    aria-label=${t("qrLabel")}
    shape-rendering="crispEdges"
  >
    <path fill="#fff" d="M0 0h${size}v${size}H0z" />
    <path fill="#000" d=${path} />
  </svg>`;
}
