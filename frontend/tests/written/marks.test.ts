import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Mark, Marks, isBack } from "../../src/written/marks.ts";
import { hunk, diff } from "../support/written.ts";

const place = fc.record({ turn: fc.nat(2), path: fc.constantFrom("a", "b\nc") });
const step = fc.tuple(place, fc.array(fc.constantFrom("1", "2", "3")), fc.constantFrom("keep", "undo", undefined));

describe("marks of hunks", () => {
  it("are what was marked last, and count what they select", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const marks = new Marks();
        const expected = new Map<string, Mark>();
        for (const [where, ids, mark] of steps) {
          marks.set(where, ids, mark);
          for (const id of ids) {
            const key = JSON.stringify([where.turn, where.path, id]);
            if (mark) expected.set(key, mark);
            else expected.delete(key);
          }
        }
        for (const mark of ["keep", "undo"] as const) {
          const selected = marks
            .selections(mark)
            .flatMap(({ turn, path, hunks }) => hunks.map((id) => JSON.stringify([turn, path, id])));
          expect(selected.sort()).toEqual(
            [...expected]
              .filter(([, one]) => one === mark)
              .map(([key]) => key)
              .sort(),
          );
          expect(marks.count(mark)).toBe(selected.length);
        }
        expect([0, 1, 2].reduce((sum, turn) => sum + marks.countIn(turn), 0)).toBe(expected.size);
      }),
    );
  });

  it("are sent with the newest turn first", () => {
    const marks = new Marks();
    for (const turn of [1, 3, 2]) marks.set({ turn, path: "a" }, ["1"], "undo");
    expect(marks.selections("undo").map((one) => one.turn)).toEqual([3, 2, 1]);
  });

  it("of one turn are not those of a turn whose number begins alike", () => {
    const marks = new Marks();
    marks.set({ turn: 12, path: "a" }, ["1"], "undo");
    expect([marks.countIn(1), marks.countIn(12)]).toEqual([0, 1]);
  });

  it("go with what they are of", () => {
    const marks = new Marks();
    marks.set({ turn: 1, path: "a" }, ["1", "2", "3"], "keep");
    marks.set({ turn: 1, path: "b" }, ["1"], "keep");
    marks.prune(diff({ path: "a", hunks: [hunk({ id: "1" }), hunk({ id: "2", state: "undone" })] }));
    expect(marks.selections("keep")).toMatchObject([{ path: "a", hunks: ["1"] }, { path: "b" }]);
    marks.limit([{ turn: 1, path: "b" }]);
    expect(marks.count("keep")).toBe(1);
    marks.clear();
    expect(marks.count("keep")).toBe(0);
  });
});

it.each([
  ["written", undefined, false],
  ["written", "keep", false],
  ["written", "undo", true],
  ["undone", undefined, true],
  ["undone", "keep", true],
] as const)("a hunk that is %s and marked %s is shown as it was before: %s", (state, mark, back) => {
  expect(isBack(hunk({ state }), mark)).toBe(back);
});
