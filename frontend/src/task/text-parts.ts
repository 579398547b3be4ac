// A long text divided at its blank lines, so that only what changed is parsed and only what is seen is drawn.

/** Characters after which a text is divided at the next blank line between its blocks. */
const PART = 6_000;
/** Characters after which it is divided at any line end, or anywhere if there is none. */
const HARD_PART = 40_000;
const LOOK = 500;

export interface TextPart {
  text: string;
  /** Line that opens the code block in which the part begins, if it was divided there. */
  prefix: string;
}

/** The last part of a growing text. The cost of `add` depends on what is added alone. */
export class GrowingText {
  #scanned = 0;
  #fence = "";
  #wasBlank = false;
  #cut = 0;
  /** Length at which the part was looked at last: pieces of a few characters are looked at together. */
  #seen = 0;

  constructor(readonly part: TextPart) {}

  /** Add text; return the parts that follow this one, and with them the text that grows from now on. */
  add(text: string): { parts: TextPart[]; growing: GrowingText } {
    const parts: TextPart[] = [];
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the part that grows changes
    let growing: GrowingText = this;
    // Piece by piece, so that a text of many megabytes is not copied again for each part of it.
    for (let at = 0; at < text.length; at += PART) {
      growing.part.text += text.slice(at, at + PART);
      for (let next = growing.#divide(); next; next = growing.#divide()) {
        parts.push(next.part);
        growing = next;
      }
    }
    return { parts, growing };
  }

  #divide(): GrowingText | undefined {
    const text = this.part.text;
    if (text.length <= PART || text.length - this.#seen < LOOK) return undefined;
    this.#scan(text);
    this.#seen = text.length;
    let at = this.#cut;
    let fence = "";
    if (at === 0) {
      if (text.length <= HARD_PART) return undefined;
      const line = text.lastIndexOf("\n", HARD_PART);
      at = line > HARD_PART / 2 ? line + 1 : HARD_PART;
      fence = this.#fence;
    }
    this.part.text = text.slice(0, at);
    return new GrowingText({ text: text.slice(at), prefix: fence });
  }

  /** Look for the last place, behind a blank line, at which a block begins that cannot belong to the one before. */
  #scan(text: string): void {
    if (this.#scanned === 0 && this.part.prefix) this.#fence = this.part.prefix;
    for (;;) {
      const end = text.indexOf("\n", this.#scanned);
      if (
        this.#wasBlank &&
        !this.#fence &&
        this.#scanned >= PART / 2 &&
        /^[^\s\d>|*+-]$/.test(text[this.#scanned] ?? "")
      )
        this.#cut = this.#scanned;
      if (end < 0) return;
      const line = text.slice(this.#scanned, end);
      const found = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
      if (found && !this.#fence) this.#fence = line.trim();
      else if (found && this.#fence.startsWith(found.slice(0, 3))) this.#fence = "";
      this.#wasBlank = line.trim() === "";
      this.#scanned = end + 1;
    }
  }
}
