import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { barParts, percent } from "../../src/frame/session-figures.ts";
import { usedText } from "../../src/frame/status-line.ts";

describe("the figures of the status line", () => {
  const figures = { folder: "", model: "", tokens: 65_421, cost: "$0.21" };
  it.each([
    [figures, undefined, "65,421 tokens \u00b7 $0.21"],
    [{ ...figures, cost: "" }, undefined, "65,421 tokens \u00b7 price unknown"],
    [{ ...figures, tokens: undefined }, undefined, "$0.21"],
    [undefined, { tokens: 62_410, cost: "$0.21" }, "62,410 tokens \u00b7 $0.21 today"],
    [undefined, { tokens: 62_410, cost: "" }, "62,410 tokens \u00b7 price unknown today"],
    [undefined, { tokens: 0, cost: "" }, ""],
    [undefined, undefined, ""],
    [figures, { tokens: 1, cost: "" }, "65,421 tokens \u00b7 $0.21"],
  ])("%j and today %j are said as %j", (shown, today, words) => {
    expect(usedText({ figures: shown, today })).toBe(words);
  });
});

describe("the parts of a context", () => {
  it.each([
    [38_204, 1_048_576, "4 %"],
    [1, 1_048_576, "<1 %"],
    [0, 100, "0 %"],
    [100, 100, "100 %"],
  ])("%i of %i is %s", (part, whole, said) => {
    expect(percent(part, whole)).toBe(said);
  });

  it("follow one another, are seen if they are not empty, and never leave the bar", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1_000_000), { maxLength: 4 }),
        fc.integer({ min: 1, max: 1_000_000 }),
        (parts, whole) => {
          const found = barParts(parts, whole);
          let end = 0;
          for (const [at, { x, width }] of found.entries()) {
            expect(x).toBeCloseTo(end);
            expect(x + width).toBeLessThanOrEqual(100.000_001);
            if (parts[at] && x < 99) expect(width).toBeGreaterThan(0);
            end = Math.min(100, x + width);
          }
        },
      ),
    );
  });
});
