import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Mark, hunkMarks, lineMarks, linePairs } from "../../src/diff/words.ts";

const word = fc.constantFrom(
  "due",
  "left",
  "datetime",
  ".",
  "(",
  ")",
  " ",
  "  ",
  "\u4eca\u5929",
  "\t",
  "",
  "=",
  "\ud83d\ude00",
);
const line = fc.array(word, { maxLength: 12 }).map((words) => words.join(""));
const lines = fc.array(line, { maxLength: 8 });

/** Return what of a line is not marked. */
function rest(text: string, marks: readonly Mark[]): string {
  let left = "";
  let at = 0;
  for (const [from, to] of marks) {
    left += text.slice(at, from);
    at = to;
  }
  return left + text.slice(at);
}

const shown = (text: string, marks: readonly Mark[]): string =>
  [...marks]
    .reverse()
    .reduce((now, [from, to]) => `${now.slice(0, from)}[${now.slice(from, to)}]${now.slice(to)}`, text);

describe("the marks of two lines", () => {
  it("leave the same words of both, but for their blanks", () => {
    fc.assert(
      fc.property(line, line, (old, now) => {
        const [one, other] = lineMarks(old, now);
        const bare = (text: string): string => text.replace(/\s/g, "");
        expect(bare(rest(old, one))).toBe(bare(rest(now, other)));
      }),
    );
  });

  it("are in order, within the line, not empty, and apart", () => {
    fc.assert(
      fc.property(line, line, (old, now) => {
        const [marks] = lineMarks(old, now);
        let at = -1;
        for (const [from, to] of marks) {
          expect(from).toBeGreaterThan(at);
          expect(to).toBeGreaterThan(from);
          at = to;
        }
        expect(at).toBeLessThanOrEqual(old.length);
      }),
    );
  });

  it("are none for lines that are alike", () => {
    fc.assert(
      fc.property(line, (text) => {
        expect(lineMarks(text, text)).toEqual([[], []]);
      }),
    );
  });

  it("are whole words", () => {
    const [old, now] = [
      "    due = datetime.fromisoformat(sailing.departs)",
      "    due = _moment(sailing.departs, zone)",
    ];
    const [one, other] = lineMarks(old, now);
    expect(shown(old, one)).toBe("    due = [datetime.fromisoformat](sailing.departs)");
    expect(shown(now, other)).toBe("    due = [_moment](sailing.departs[, zone])");
  });

  it("are single letters where words have no blanks between them", () => {
    expect(lineMarks("\u6211\u4eec\u4eca\u5929\u53bb", "\u6211\u4eec\u660e\u5929\u53bb")).toEqual([[[2, 3]], [[2, 3]]]);
  });

  it("name an indentation only where nothing else differs", () => {
    expect(lineMarks("  x", "    x")).toEqual([[[0, 2]], [[0, 4]]]);
    expect(lineMarks("  x = 1", "    x = 2")).toEqual([[[6, 7]], [[8, 9]]]);
  });
});

describe("the lines of a hunk", () => {
  it("are paired in order, each at most once", () => {
    fc.assert(
      fc.property(lines, lines, (old, now) => {
        let last: [number, number] = [-1, -1];
        for (const [i, j] of linePairs(old, now)) {
          expect(i).toBeGreaterThan(last[0]);
          expect(j).toBeGreaterThan(last[1]);
          last = [i, j];
        }
        expect(last[0]).toBeLessThan(Math.max(1, old.length));
        expect(last[1]).toBeLessThan(Math.max(1, now.length));
      }),
    );
  });

  it("have marks for each of them, and none where a line has no other", () => {
    const { old, now } = hunkMarks(["import a, b"], ["import a, c, b", "", "from x import y"]);
    expect(old).toEqual([[]]);
    expect(now).toEqual([[[10, 13]], [], []]);
  });

  it("of thousands of lines are compared one by one", () => {
    const many = Array.from({ length: 2_000 }, (_, at) => `line ${at} of many`);
    const { old } = hunkMarks(
      many,
      many.map((text) => text.replace("many", "these")),
    );
    expect(old[1_999]).toEqual([[13, 17]]);
    expect(hunkMarks([...many, ...many], [...many, ...many, "more"]).old.flat()).toEqual([]);
    expect(hunkMarks([`${"a,".repeat(100_000)}x`], [`${"a,".repeat(100_000)}y`]).old[0]).toEqual([[200_000, 200_001]]);
  });
});
