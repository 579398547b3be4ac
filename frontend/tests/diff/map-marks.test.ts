import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MARK_PX, mapMarks, markAt } from "../../src/diff/map-marks.ts";

describe("the marks of a map", () => {
  it("stand where the hunks begin, and say which were seen", () => {
    expect(mapMarks([0, 0.5, 1], [true, false, true], 600)).toEqual([
      { top: 0, hunk: 0, isSeen: true },
      { top: 300, hunk: 1, isSeen: false },
      { top: 595, hunk: 2, isSeen: true },
    ]);
  });

  it("of hunks near each other are one, which was seen once all were", () => {
    expect(mapMarks([0.5, 0.501, 0.502], [true, false, true], 600)).toEqual([{ top: 300, hunk: 0, isSeen: false }]);
    expect(mapMarks([0.5, 0.501], [true, true], 600)).toEqual([{ top: 300, hunk: 0, isSeen: true }]);
  });

  it("never cover each other and never leave the map, however many hunks there are", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 400 }),
        fc.integer({ min: 20, max: 2_000 }),
        (places, height) => {
          const shares = places.sort((one, other) => one - other);
          const marks = mapMarks(shares, [], height);
          expect(marks.length > 0).toBe(shares.length > 0);
          marks.forEach((mark, at) => {
            expect(mark.top).toBeGreaterThanOrEqual(at ? (marks[at - 1]?.top ?? 0) + MARK_PX + 1 : 0);
            expect(mark.top + MARK_PX).toBeLessThanOrEqual(height);
          });
        },
      ),
    );
  });

  it("are found by a click on them, or a little beside them", () => {
    const marks = mapMarks([0.1, 0.5], [], 600);
    expect([62, 55, 74].map((y) => markAt(marks, y)?.hunk)).toEqual([0, 0, 0]);
    expect(markAt(marks, 200)).toBeUndefined();
    expect(markAt(marks, 302)?.hunk).toBe(1);
    expect(markAt([], 3)).toBeUndefined();
  });
});
