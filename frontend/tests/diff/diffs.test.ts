import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countLines } from "../../src/diff/diffs.ts";

describe("the counts of a change", () => {
  it("count lines that only moved", () => {
    expect(countLines("a\nb\n", "b\na\n")).toEqual({ added: 1, removed: 1 });
  });

  it("count a final line feed as a change of its line", () => {
    expect(countLines("a\nb", "a\nb\n")).toEqual({ added: 1, removed: 1 });
    expect(countLines("", "a\n")).toEqual({ added: 1, removed: 0 });
    expect(countLines("a\nb\n", "")).toEqual({ added: 0, removed: 2 });
  });

  it("are nothing exactly for texts that are alike, and add up to the difference of the lines", () => {
    const lines = fc
      .array(fc.constantFrom("a", "b", "", "}"), { maxLength: 20 })
      .map((all) => all.map((one) => `${one}\n`));
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const { added, removed } = countLines(before.join(""), after.join(""));
        expect(added - removed).toBe(after.length - before.length);
        expect(added + removed === 0).toBe(before.join("") === after.join(""));
      }),
    );
  });
});
