// Texts of the page with code in them: what stands between backticks.

import { type TemplateResult, html } from "lit";

/** Return a text of the page, with what stands between backticks as code. */
export function codeText(text: string): TemplateResult {
  return html`${text.split("`").map((part, at) => (at % 2 ? html`<code translate="no">${part}</code>` : part))}`;
}
