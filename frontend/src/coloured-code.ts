// The colours of a block of code in a text. What finds them comes with the first such block.

import { html, noChange } from "lit";
import { AsyncDirective, directive } from "lit/async-directive.js";
import type { ChildPart } from "lit/directive.js";
import { type Span, piecesOf } from "./diff/code-spans.ts";

/** Time in ms for which a text that grows must rest before its colours are found. */
const REST_MS = 150;
/** Characters of a block that has colours at most. */
const LONGEST = 50_000;

/** Return lines with their colours. */
function drawn(text: string, lines: readonly (readonly Span[])[]) {
  return text
    .split("\n")
    .map((line, at) => [
      at ? "\n" : "",
      piecesOf(line, lines[at] ?? []).map((piece) =>
        piece.name ? html`<span class="c-${piece.name}">${piece.text}</span>` : piece.text,
      ),
    ]);
}

class Coloured extends AsyncDirective {
  #text = "";
  #language = "";
  /** The text whose colours are known, the beginning of what is shown, and the colours. */
  #known: { text: string; lines: Span[][] } = { text: "", lines: [] };
  #part: ChildPart | undefined;
  #timer = 0;

  override render(text: string, _language: string): unknown {
    return text;
  }

  override update(part: ChildPart, [text, language]: [string, string]): unknown {
    this.#part = part;
    if (text === this.#text && language === this.#language) return noChange;
    if (language !== this.#language || !text.startsWith(this.#known.text)) this.#known = { text: "", lines: [] };
    [this.#text, this.#language] = [text, language];
    this.#wait();
    return this.#shown();
  }

  protected override disconnected(): void {
    clearTimeout(this.#timer);
  }

  protected override reconnected(): void {
    if (this.#known.text !== this.#text) this.#wait();
  }

  #shown(): unknown {
    const { text, lines } = this.#known;
    return text ? [drawn(text, lines), this.#text.slice(text.length)] : this.#text;
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#language && this.#text.length <= LONGEST)
      this.#timer = window.setTimeout(() => void this.#find(), REST_MS);
  }

  async #find(): Promise<void> {
    const [text, language] = [this.#text, this.#language];
    if (!this.isConnected || !this.#part?.parentNode.isConnected) return;
    try {
      const { fenceColours } = await import("./diff/code-colours.ts");
      const lines = await fenceColours(text, language);
      if (!lines.length || text !== this.#text || language !== this.#language) return;
      this.#known = { text, lines };
      this.setValue(this.#shown());
    } catch {
      // Without a connection the text stays as it is.
    }
  }
}

/** Draw code in the colours of a language, given as a fence of Markdown names it; at first, and of others, without. */
export const colouredCode = directive(Coloured);
