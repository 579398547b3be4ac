import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { followedPlace, isAtWaiting, isFollowing, placeOf } from "../../../src/parts/rows/following.ts";

const list = { total: 5000, height: 700, waiting: undefined };

describe("the place that a reader of a list follows", () => {
  it("is its end", () => {
    expect(followedPlace(list)).toBe(4300);
    expect(followedPlace({ ...list, total: 300 })).toBe(0);
    expect([4300, 4230, 4200].map((top) => isFollowing(top, list))).toEqual([true, true, false]);
  });

  it.each([
    { window: "of a desktop", height: 700, near: 80 },
    { window: "of a phone", height: 600, near: 80 },
    { window: "at 400 %, where 80 px are most of what is seen", height: 100, near: 25 },
  ])("is left at a limit that fits the window $window", ({ height, near }) => {
    const end = list.total - height;
    const isNear = (distance: number) => isFollowing(end - distance, { ...list, height });
    expect([0, near - 1, near, near + 1].map(isNear)).toEqual([true, true, false, false]);
    const waits = { ...list, height, waiting: 3000 };
    const place = followedPlace(waits);
    expect([near, near + 1].map((distance) => isAtWaiting(place - distance, waits))).toEqual([true, false]);
  });

  it("is no further than the item that waits, below what explains it", () => {
    const waits = { ...list, waiting: 3000 };
    expect(followedPlace(waits)).toBe(2720);
    expect([2720, 2760, 4300].map((top) => isFollowing(top, waits))).toEqual([true, false, false]);
    expect([2600, 2700, 3500].map((top) => isAtWaiting(top, waits))).toEqual([false, true, true]);
  });

  it("is the end all the same if the item that waits is in view there", () => {
    const waits = { ...list, waiting: 4800 };
    expect(followedPlace(waits)).toBe(4300);
    expect([4300, 4298].map((top) => isFollowing(top, waits))).toEqual([true, true]);
  });

  it("is left by a reader who scrolled a little while an item waits, so that its buttons stay where they are", () => {
    const waits = { ...list, waiting: 4800 };
    expect(isFollowing(4250, waits)).toBe(false);
    expect(isAtWaiting(4250, waits)).toBe(true);
  });

  it("shows the item that waits, wherever it is", () => {
    const sizes = fc.record({ above: fc.nat(9000), size: fc.integer({ min: 1, max: 3000 }), below: fc.nat(9000) });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 200, max: 1500 }), ({ above, size, below }, height) => {
        const top = followedPlace({ total: above + size + below, height, waiting: above });
        expect(placeOf(above, size, top, height)).toBe("in");
      }),
    );
  });
});

describe("where an item is for a reader", () => {
  it("is in view with all of it, or with enough to be read", () => {
    expect(placeOf(1000, 40, 960, 700)).toBe("in");
    expect(placeOf(1000, 900, 1780, 700)).toBe("in");
    expect(placeOf(1000, 900, 1790, 700)).toBe("above");
    expect(placeOf(1000, 900, 420, 700)).toBe("in");
    expect(placeOf(1000, 900, 400, 700)).toBe("below");
  });
});
