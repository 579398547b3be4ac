import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GrowingText, type TextPart } from "../../src/task/text-parts.ts";

/** Return the parts of a text that comes in pieces. */
function divided(pieces: string[]): TextPart[] {
  const first: TextPart = { text: "", prefix: "" };
  const all = [first];
  let growing = new GrowingText(first);
  for (const piece of pieces) {
    const added = growing.add(piece);
    all.push(...added.parts);
    growing = added.growing;
  }
  return all;
}

const paragraph = (word: string, length: number): string => `${word} `.repeat(length / (word.length + 1));

describe("a long text", () => {
  it("is whole, whatever it is and however it comes", () => {
    const block = fc.oneof(
      fc.string({ maxLength: 50 }),
      fc.constantFrom("\n", "\n\n", "```\n", "~~~\n", "- a\n", "\n\nNext\n"),
      fc.integer({ min: 1, max: 50_000 }).map((size) => "x".repeat(size)),
      fc.integer({ min: 1, max: 9 }).map((times) => `${paragraph("word", 1000)}\n\n`.repeat(times)),
    );
    fc.assert(
      fc.property(fc.array(block, { maxLength: 25 }), (pieces) => {
        const parts = divided(pieces);
        expect(parts.map((part) => part.text).join("")).toBe(pieces.join(""));
        for (const part of parts) expect(part.text.length).toBeLessThanOrEqual(46_500);
      }),
    );
  });

  it("stays one part while it is short", () => {
    expect(divided(["a\n\n", "b\n\n"])).toEqual([{ text: "a\n\nb\n\n", prefix: "" }]);
  });

  it("is divided before a paragraph that follows a blank line", () => {
    const parts = divided([`${paragraph("one", 5000)}\n\n`, `Two ${paragraph("two", 3000)}`]);
    expect(parts).toHaveLength(2);
    expect(parts[1]?.text).toMatch(/^Two two/);
  });

  it.each(["- an item", "> a quote", "1. a number", "  indented", "| a row"])("is not divided before %j", (line) => {
    const parts = divided([`${paragraph("one", 5000)}\n\n`, `${line} ${paragraph("two", 3000)}`]);
    expect(parts).toHaveLength(1);
  });

  it.each(["```js", "~~~"])(
    "is not divided within a block of code that begins with %s, until it is very long",
    (fence) => {
      const begin = `${paragraph("one", 400)}\n\n${fence}\n`;
      expect(divided([begin, "a\n\nb\n\n".repeat(1000)])).toHaveLength(1);
      const [, second] = divided([begin, "a\n\nb\n\n".repeat(7000)]);
      expect(second?.prefix).toBe(fence);
    },
  );
});
