import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Stretch, SeenParts, firstUnseen, isWhole, withStretch } from "../../src/diff/seen-parts.ts";

const stretch = fc
  .tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 100 }))
  .filter(([from, to]) => from < to)
  .map(([from, to]): Stretch => [from / 100, to / 100]);

const union = (stretches: Stretch[]): Stretch[] =>
  stretches.reduce<Stretch[]>((all, one) => withStretch(all, one, 0), []);

describe("stretches that were seen", () => {
  it("are apart, in order, and the same in any order of coming", () => {
    fc.assert(
      fc.property(fc.array(stretch, { maxLength: 12 }), (stretches) => {
        const all = union(stretches);
        expect(union([...stretches].reverse())).toEqual(all);
        for (const [at, [from]] of all.entries()) if (at) expect(from).toBeGreaterThan(all[at - 1]?.[1] as number);
      }),
    );
  });

  it("hold exactly the places that one of them holds", () => {
    fc.assert(
      fc.property(fc.array(stretch, { maxLength: 12 }), fc.integer({ min: 0, max: 99 }), (stretches, place) => {
        const at = place / 100 + 0.005;
        const holds = (all: Stretch[]): boolean => all.some(([from, to]) => from < at && at < to);
        expect(holds(union(stretches))).toBe(holds(stretches));
      }),
    );
  });

  it("are whole from the beginning to the end alone", () => {
    expect(isWhole([[0, 1]], 0)).toBe(true);
    expect(
      isWhole(
        [
          [0, 0.5],
          [0.6, 1],
        ],
        0,
      ),
    ).toBe(false);
    expect(isWhole([[0.01, 0.99]], 0.02)).toBe(true);
    expect(firstUnseen([[0, 0.4]])).toBe(0.4);
    expect(firstUnseen([[0.3, 0.4]])).toBe(0);
  });
});

describe("the parts of hunks", () => {
  it("complete a hunk when the last of them was seen as a whole", () => {
    const parts = new SeenParts();
    parts.add(0, 10);
    parts.add(0, 11);
    parts.add(1, 12);
    expect(parts.note(10, 0, 1, 100)).toBe(false);
    expect(parts.note(11, 0, 0.5, 100)).toBe(false);
    expect(parts.next).toEqual({ part: 11, from: 0.5 });
    expect(parts.counts).toEqual({ seen: 0, all: 2 });
    expect(parts.note(11, 0.5, 1, 100)).toBe(true);
    expect(parts.counts).toEqual({ seen: 1, all: 2 });
    expect(parts.next).toEqual({ part: 12, from: 0 });
    expect(parts.isAwaited(11)).toBe(false);
    expect(parts.note(11, 0, 1, 100)).toBe(false);
  });

  it("are not seen by a stretch of nothing, or of a part that is none of them", () => {
    const parts = new SeenParts();
    parts.add(0, 1);
    expect(parts.note(1, 0.5, 0.5, 100)).toBe(false);
    expect(parts.note(2, 0, 1, 100)).toBe(false);
    expect(parts.counts).toEqual({ seen: 0, all: 1 });
  });
});
