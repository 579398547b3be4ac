import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MARKED, exact, exactLine, exactParts, outputText, visible, visibleLine } from "../../src/text/safe.ts";

/** Texts of letters, of what does not show, and of what looks like something else. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom("a", "Z", " ", "\n", "\t", "\r\n", "\r", "\u0000", "\u001b", "\u007f", "\u0085", "\u00ad"),
      fc.constantFrom("\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u3164", "\u{e0041}", "\u00a0", "\ufe0f"),
      fc.constantFrom("\u0430", "\u03bf", "\uff41", "\u{1d41a}", "\u4e2d", "\u{1f600}"),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(""));

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Characters of these kinds that do show: tabs, line feeds, marks before Arabic and other numbers, joints of hieroglyphs. */
const SEEN = /[\t\n\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1343f}]/u;

describe("text of strangers", () => {
  it("hides nothing: no character stays that does not show, but for tabs and line ends", () => {
    fc.assert(
      fc.property(fc.oneof(hostile, fc.string({ unit: "binary" })), (text) => {
        for (const show of [visible, exact]) {
          const left = [...show(text)].filter((one) => HIDDEN.test(one) && !SEEN.test(one));
          expect(left).toEqual([]);
        }
      }),
    );
  });

  it("is shown as it is where all of it shows", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "\u4e2d", "\u0430\u0431", " ", "\n", "\t", "\u{1f600}", "&<>")),
        (parts) => {
          const text = parts.join(" ");
          expect(visible(text)).toBe(text);
          expect(exact(text)).toBe(text);
        },
      ),
    );
  });

  it.each([
    ["a\u202eb", "a\\u{202e}b"],
    ["\u0000\u001b\u007f", "\u2400\u241b\u2421"],
    ["a\r\nb\rc", "a\nb\u240dc"],
    ["a\u{e0041}", "a\\u{e0041}"],
  ])("%j is shown as %j", (text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it.each([
    ["p\u0430ypal", "p\\u{430}ypal"],
    ["\u043f\u0430\u0440\u043e\u043b\u044c", "\u043f\u0430\u0440\u043e\u043b\u044c"],
    ["rm\u00a0-rf", "rm\\u{a0}-rf"],
    ["\uff52m", "\\u{ff52}m"],
  ])("%j to approve is shown as %j", (text, shown) => {
    expect(exact(text)).toBe(shown);
  });
});

describe("a text to approve in three parts", () => {
  it("is the whole text with the same stand-ins, wherever it is divided", () => {
    fc.assert(
      fc.property(hostile, fc.nat(30), fc.nat(30), (text, one, other) => {
        // An editor has line feeds alone, and divides no character.
        const plain = text.replaceAll("\r", "");
        const place = (at: number): number => [...plain].slice(0, at).join("").length;
        const [from, to] = [place(Math.min(one, other)), place(Math.max(one, other))];
        expect(exactParts(plain, from, to).join("")).toBe(exact(plain));
      }),
    );
  });

  it("judges a letter by its neighbours in another part", () => {
    expect(exactParts("p\u0430ypal", 1, 2)).toEqual(["p", "\\u{430}", "ypal"]);
  });
});

describe("one line", () => {
  it("is never longer than its limit, and has no line end", () => {
    fc.assert(
      fc.property(hostile, fc.integer({ min: 1, max: 40 }), (text, limit) => {
        for (const line of [exactLine(text, limit), visibleLine(text, limit)]) {
          expect(line.length).toBeLessThanOrEqual(limit);
          expect(line).not.toMatch(/[\n\t]/);
        }
      }),
    );
    expect(visibleLine(" one\n\ttwo ", 300)).toBe("one two");
    expect(visibleLine("abcdef", 4)).toBe("abc\u2026");
  });
});

it("marks in a diff exactly the characters that have stand-ins", () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const plain = text.replace(/\r/g, "");
      const marked = [...plain.matchAll(MARKED)].length > 0;
      expect(marked).toBe(exact(plain) !== plain);
    }),
  );
});

describe("the output of a program", () => {
  it("has no terminal sequence in it", () => {
    const red = "\u001b[31mred\u001b[0m \u001b]0;title\u0007\u001b]8;;http://x\u001b\\link\u001b(B";
    expect(outputText(red).text).toBe("red link");
    fc.assert(
      fc.property(fc.array(fc.constantFrom("\u001b", "[", "31", "m", "]", "\u0007", "a", "\n", "\\")), (parts) => {
        expect(outputText(parts.join("")).text).not.toContain("\u001b");
      }),
    );
  });

  it("is its end if it is long, and says how much is hidden", () => {
    const { text, hidden } = outputText("x".repeat(100) + "end", 10);
    expect(text).toBe("xxxxxxxend");
    expect(hidden).toBe(93);
  });
});
