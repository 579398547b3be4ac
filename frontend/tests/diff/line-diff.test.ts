import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type LineHunk,
  comparable,
  editorHunks,
  lineHunks,
  restOf,
  splitLines,
  textHunks,
} from "../../src/diff/line-diff.ts";
import { anyEdit, anyText } from "../support/texts.ts";

/** Return the new lines, made from the old ones by the hunks. */
function withHunks(old: readonly string[], now: readonly string[], hunks: readonly LineHunk[]): string[] {
  const result: string[] = [];
  let at = 0;
  for (const { oldFrom, oldTo, newFrom, newTo } of hunks) {
    result.push(...old.slice(at, oldFrom), ...now.slice(newFrom, newTo));
    at = oldTo;
  }
  return [...result, ...old.slice(at)];
}

const hunksOf = (before: string, after: string): LineHunk[] => lineHunks(splitLines(before), splitLines(after));

describe("the lines of a text", () => {
  it("are the whole text, each with at most one line feed, at its end", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.string()), (text) => {
        const lines = splitLines(text);
        expect(lines.join("")).toBe(text);
        for (const line of lines) expect(line).toMatch(/^[^\n]*\n?$/);
        for (const line of lines.slice(0, -1)) expect(line).toMatch(/\n$/);
        expect(lines).not.toContain("");
      }),
    );
  });
});

describe("the hunks between texts", () => {
  it("make the new text from the old one", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const [old, now] = [splitLines(before), splitLines(after)];
        expect(withHunks(old, now, lineHunks(old, now))).toEqual(now);
      }),
    );
  });

  it("are apart from each other, in order, and none is empty", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        let [old, now] = [-1, -1];
        for (const { oldFrom, oldTo, newFrom, newTo } of hunksOf(before, after)) {
          expect(oldFrom).toBeGreaterThan(old);
          expect(newFrom).toBeGreaterThan(now);
          expect(oldTo - oldFrom + newTo - newFrom).toBeGreaterThan(0);
          [old, now] = [oldTo, newTo];
        }
      }),
    );
  });

  it("are none for a text and itself, and change sides with the texts", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(hunksOf(text, text)).toEqual([]);
      }),
    );
    expect(hunksOf("a\nb\n", "a\n")).toEqual([{ oldFrom: 1, oldTo: 2, newFrom: 1, newTo: 1 }]);
    expect(hunksOf("a\n", "a\nb\n")).toEqual([{ oldFrom: 1, oldTo: 1, newFrom: 1, newTo: 2 }]);
  });

  it("are found in texts that are too long to be compared in full", () => {
    const old = Array.from({ length: 6000 }, (_, at) => `line ${at}\n`);
    const now = old.filter((_, at) => at % 1000 !== 5);
    expect(lineHunks(old, now)).toHaveLength(6);
    expect(withHunks(old, now, lineHunks(old, now))).toEqual(now);
    const moved = [...old.slice(3000), ...old.slice(0, 3000)];
    expect(withHunks(old, moved, lineHunks(old, moved))).toEqual(moved);
  });
});

describe("the hunks between texts without the lines alike at their ends", () => {
  it("are those between all of their lines", () => {
    const few = fc.string({ unit: fc.constantFrom("a", "\n"), maxLength: 12 });
    fc.assert(
      fc.property(fc.oneof(anyEdit, fc.tuple(few, few)), ([before, after]) => {
        expect(textHunks(before, after)).toEqual(hunksOf(before, after));
      }),
      { numRuns: 1000 },
    );
  });

  it("need little of long texts that differ in one line", () => {
    const lines = Array.from({ length: 100_000 }, (_, at) => `line ${at} of a long text\n`);
    const before = lines.join("");
    lines[50_000] = "another\n";
    const rest = restOf(before, lines.join(""));
    expect(rest).toEqual({ before: "line 50000 of a long text\n", after: "another\n", lines: 50_000 });
  });
});

describe("the hunks of an editor", () => {
  it("make the lines of an editor from each other", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const [old, now] = [before.split("\n"), after.split("\n")];
        expect(withHunks(old, now, editorHunks(before, after))).toEqual(now);
      }),
    );
  });

  it("have the empty line after a final line feed in the last hunk", () => {
    expect(editorHunks("a", "a\n")).toEqual([{ oldFrom: 0, oldTo: 1, newFrom: 0, newTo: 2 }]);
  });
});

it("a byte order mark that the new text lacks is not a change", () => {
  expect(comparable("\ufeffa", "a")).toBe("a");
  expect(comparable("\ufeffa", "\ufeffb")).toBe("\ufeffa");
  expect(comparable("a", "\ufeffa")).toBe("a");
});
