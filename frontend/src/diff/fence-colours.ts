// The colours of blocks of code in texts, as highlights of the browser: nothing of the document changes for them.

import { CODE_TAGS } from "./editor/code-tags.ts";

/** Time in ms for which a text that grows must rest before its colours are found. */
const REST_MS = 150;
const LONGEST = 50_000;
const FENCES = "figure[data-language] code";

interface Painted {
  text: string;
  ranges: [Highlight, StaticRange | Range][];
}

/** Gives the blocks of code below `root` their colours, as they come and change. */
export class FenceColours {
  #painted = new Map<Element, Painted>();
  #timer = 0;
  #seen = new MutationObserver(() => this.#wait());

  constructor(private readonly root: HTMLElement) {
    // A browser without highlights shows code without colours.
    if (!("highlights" in CSS)) return;
    this.#seen.observe(root, { childList: true, subtree: true, characterData: true });
    this.#wait();
  }

  end(): void {
    this.#seen.disconnect();
    clearTimeout(this.#timer);
    for (const code of this.#painted.keys()) this.#forget(code);
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#look(), REST_MS);
  }

  async #look(): Promise<void> {
    for (const code of this.#painted.keys()) if (!code.isConnected) this.#forget(code);
    for (const code of this.root.querySelectorAll<HTMLElement>(FENCES)) {
      const text = code.textContent;
      if (this.#painted.get(code)?.text === text || text.length > LONGEST) continue;
      this.#forget(code);
      await this.#paint(code, text).catch(() => undefined); // without a connection it stays as it is
    }
  }

  async #paint(code: HTMLElement, text: string): Promise<void> {
    const { fenceColours } = await import("./editor/code-colours.ts");
    const lines = await fenceColours(text, code.closest("figure")?.dataset.language ?? "");
    const node = [...code.childNodes].find((child) => child instanceof Text && child.data === text);
    if (!code.isConnected || !node) return;
    const ranges: Painted["ranges"] = [];
    let start = 0;
    for (const [at, line] of text.split("\n").entries()) {
      for (const { from, to, name } of lines[at] ?? []) {
        const range = new StaticRange({
          startContainer: node,
          startOffset: start + from,
          endContainer: node,
          endOffset: start + to,
        });
        const highlight = highlightOf(name);
        highlight.add(range);
        ranges.push([highlight, range]);
      }
      start += line.length + 1;
    }
    this.#painted.set(code, { text, ranges });
  }

  #forget(code: Element): void {
    for (const [highlight, range] of this.#painted.get(code)?.ranges ?? []) highlight.delete(range);
    this.#painted.delete(code);
  }
}

/** Return the highlight of a colour, `c-NAME` in the style sheet. */
function highlightOf(classes: string): Highlight {
  const name = CODE_TAGS.map((each) => `c-${each.name}`).find((each) => classes.split(" ").includes(each)) ?? classes;
  let highlight = CSS.highlights.get(name);
  if (!highlight) CSS.highlights.set(name, (highlight = new Highlight()));
  return highlight;
}
