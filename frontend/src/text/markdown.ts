// Markdown as templates: nothing of it is ever HTML, so that a script in it is text.

import { html, nothing, type TemplateResult } from "lit";
import { type Token, type Tokens, lexer } from "marked";
import { visible } from "./safe.ts";
import { t } from "../words.ts";

type Shown = TemplateResult | string | typeof nothing;

/** A line that is longer, or a text, is shown as it is: what reads Markdown may take long for it. */
const LONGEST_LINE = 5_000;
const LONGEST = 50_000;

/** Return Markdown as a template. */
export function markdown(text: string): Shown[] {
  if (text.length > LONGEST || (text.length > LONGEST_LINE && isLongLine(text)))
    return [html`<p class="plain">${visible(text)}</p>`];
  try {
    const tokens = lexer(visible(text), { gfm: true });
    return blocks(tokens, topOf(tokens));
  } catch {
    return [html`<p>${visible(text)}</p>`];
  }
}

function isLongLine(text: string): boolean {
  for (let at = 0; at < text.length;) {
    const end = text.indexOf("\n", at);
    if ((end < 0 ? text.length : end) - at > LONGEST_LINE) return true;
    if (end < 0) return false;
    at = end + 1;
  }
  return false;
}

const MADE = new WeakMap<object, { text: string; shown: Shown[] }>();

/** Return the Markdown of an item, parsed again only if its text has changed. */
export function markdownOf(item: object, text: string): Shown[] {
  const known = MADE.get(item);
  if (known?.text === text) return known.shown;
  const shown = markdown(text);
  MADE.set(item, { text, shown });
  return shown;
}

/** Return the depth of the first heading, which is one below the title of the page; deeper ones are below it. */
function topOf(tokens: Token[]): number {
  return (tokens.find((token) => token.type === "heading") as Tokens.Heading | undefined)?.depth ?? Infinity;
}

function blocks(tokens: Token[], top: number): Shown[] {
  return tokens.map((token) => block(token, top));
}

function block(token: Token, top: number): Shown {
  switch (token.type) {
    case "space":
    case "def":
      return nothing;
    case "heading": {
      const heading = token as Tokens.Heading;
      return heading.depth <= top ? html`<h2>${inline(heading.tokens)}</h2>` : html`<h3>${inline(heading.tokens)}</h3>`;
    }
    case "paragraph":
      return html`<p>${inline((token as Tokens.Paragraph).tokens)}</p>`;
    case "code": {
      const code = token as Tokens.Code;
      // A fence may say more than the language, such as a title behind it.
      const language = /^[\w+#.-]{1,30}/.exec(code.lang ?? "")?.[0] ?? "";
      return html`<figure class="code ${code.lang ? "" : "bare"}" data-language=${language || nothing}>
        <figcaption>
          ${code.lang ? html`<span class="cut">${code.lang.slice(0, 30)}</span>` : nothing}<isthmus-copy
            .text=${() => code.text}
            .label=${t("copyCode")}
          ></isthmus-copy>
        </figcaption>
        <pre tabindex="0"><code>${code.text}</code></pre>
      </figure>`;
    }
    case "blockquote":
      return html`<blockquote>${blocks((token as Tokens.Blockquote).tokens, top)}</blockquote>`;
    case "hr":
      return html`<hr />`;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map(
        (item) =>
          html`<li>
            ${item.task ? html`<span aria-hidden="true">${item.checked ? "\u2611" : "\u2610"}</span> ` : nothing}${blocks(item.tokens, top)}
          </li>`,
      );
      return list.ordered
        ? html`<ol start=${Number(list.start) || 1}>
            ${items}
          </ol>`
        : html`<ul>
            ${items}
          </ul>`;
    }
    case "table": {
      const table = token as Tokens.Table;
      return html`<div class="table" tabindex="0">
        <table>
          <thead>
            <tr>
              ${table.header.map((cell) => html`<th>${inline(cell.tokens)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${table.rows.map(
              (row) =>
                html`<tr>
                  ${row.map((cell) => html`<td>${inline(cell.tokens)}</td>`)}
                </tr>`,
            )}
          </tbody>
        </table>
      </div>`;
    }
    case "text": {
      const plain = token as Tokens.Text;
      return plain.tokens ? html`${inline(plain.tokens)}` : plain.text;
    }
    default:
      return html`<p>${token.raw}</p>`;
  }
}

function inline(tokens: Token[]): Shown[] {
  return tokens.map((token): Shown => {
    switch (token.type) {
      case "strong":
        return html`<strong>${inline((token as Tokens.Strong).tokens)}</strong>`;
      case "em":
        return html`<em>${inline((token as Tokens.Em).tokens)}</em>`;
      case "del":
        return html`<s>${inline((token as Tokens.Del).tokens)}</s>`;
      case "codespan":
        return html`<code class="q">${(token as Tokens.Codespan).text}</code>`;
      case "br":
        return html`<br />`;
      case "link":
      case "image": {
        const link = token as Tokens.Link;
        const words = token.type === "link" ? inline(link.tokens) : [link.text || link.href];
        // The address is shown: the words of a link can lie. Other schemes than the web's are text.
        if (!/^https?:\/\//i.test(link.href)) return html`${words} (${link.href})`;
        const isBare = link.text === link.href;
        return html`<a href=${link.href} target="_blank" rel="noopener noreferrer nofollow">${words}</a
          >${isBare ? nothing : html` <span class="t3 url">(${link.href})</span>`}`;
      }
      case "text": {
        const plain = token as Tokens.Text;
        return plain.tokens ? html`${inline(plain.tokens)}` : unescape(plain.text);
      }
      case "escape":
        return (token as Tokens.Escape).text;
      default:
        return token.raw;
    }
  });
}

function unescape(text: string): string {
  return text.replace(
    /&(amp|lt|gt|quot|#39);/g,
    (_, name: string) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[name] ?? "",
  );
}
