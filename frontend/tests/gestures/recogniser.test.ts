import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  DOUBLE_MS,
  EDGE,
  type Gesture,
  HOLD_MS,
  LENGTH,
  Recogniser,
  SLOP,
  STRAY,
  type Touch,
} from "../../src/gestures/recogniser.ts";

const WIDTH = 390;

type Step = [type: Touch["type"], x: number, y: number, at: number, id?: number];

function gestures(...steps: Step[]): Gesture[] {
  const recogniser = new Recogniser();
  return steps.flatMap(([type, x, y, at, id = 1]) => recogniser.take({ type, id, x, y, at }, WIDTH) ?? []);
}

function kinds(...steps: Step[]): string[] {
  return gestures(...steps).map(({ kind }) => kind);
}

describe("a swipe", () => {
  test("says where it would lead, and is one when the finger leaves", () => {
    expect(gestures(["down", 100, 50, 0], ["move", 140, 52, 30], ["move", 190, 55, 60], ["up", 190, 55, 80])).toEqual([
      { kind: "reach", direction: "right", x: 100, y: 50 },
      { kind: "swipe", direction: "right", x: 100, y: 50 },
    ]);
    expect(gestures(["down", 300, 50, 0], ["move", 280, 50, 10], ["up", 200, 50, 20])).toEqual([
      { kind: "swipe", direction: "left", x: 300, y: 50 },
    ]);
  });

  test("is taken back by the way back, by straying, and by the system", () => {
    const begun: Step[] = [["down", 100, 50, 0], ["move", 190, 50, 60]]; // prettier-ignore
    for (const end of [
      [["move", 120, 50, 90], ["up", 120, 50, 95]],
      [["move", 190, 50 + STRAY + 1, 90], ["up", 190, 50, 95]],
      [["cancel", 190, 50, 90]],
    ] satisfies Step[][]) // prettier-ignore
      expect(gestures(...begun, ...end).map((one) => ("direction" in one ? one.direction : one.kind))).toEqual(["right", undefined]); // prettier-ignore
  });

  test("belongs to the system at the borders of the window", () => {
    expect(kinds(["down", EDGE - 1, 50, 0], ["move", 200, 50, 50], ["up", 200, 50, 60])).toEqual([]);
    expect(kinds(["down", WIDTH - EDGE + 1, 50, 0], ["move", 100, 50, 50], ["up", 100, 50, 60])).toEqual([]);
  });
});

describe("a long press", () => {
  test("is a finger that rests, or what the system takes for one", () => {
    expect(kinds(["down", 100, 50, 0], ["up", 103, 52, HOLD_MS])).toEqual(["press"]);
    expect(kinds(["down", 100, 50, 0], ["menu", 100, 50, 400, -1], ["cancel", 0, 0, 410])).toEqual(["press"]);
    expect(kinds(["down", 100, 50, 0], ["up", 100, 50, HOLD_MS - 1])).toEqual([]);
    expect(kinds(["down", 100, 50, 0], ["cancel", 100, 50, HOLD_MS + 1])).toEqual([]);
  });

  test("that moves selects text", () => {
    for (const held of [[], [["menu", 100, 50, 450, -1]]] satisfies Step[][])
      expect(kinds(["down", 100, 50, 0], ...held, ["move", 220, 50, 600], ["up", 220, 50, 700])).toEqual([]);
  });
});

describe("a double tap", () => {
  const twice = (gap: number, x: number): string[] =>
    kinds(["down", 100, 50, 0], ["up", 100, 50, 50], ["down", x, 50, 50 + gap], ["up", x, 50, 100 + gap]);

  test("is at one place and quick", () => {
    expect(twice(DOUBLE_MS, 110)).toEqual(["double"]);
    expect(twice(DOUBLE_MS + 1, 110)).toEqual([]);
    expect(twice(100, 140)).toEqual([]);
  });

  test("comes once of three taps", () => {
    const taps = [0, 100, 200].flatMap((at): Step[] => [["down", 100, 50, at], ["up", 100, 50, at + 20]]); // prettier-ignore
    expect(kinds(...taps)).toEqual(["double"]);
  });
});

const within = fc.integer({ min: -SLOP / 2, max: SLOP / 2 });
const far = fc.integer({ min: -800, max: 800 });
const times = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 3, maxLength: 12 });

test("a scroll is never a gesture", () => {
  fc.assert(
    fc.property(times, fc.boolean(), fc.array(far, { minLength: 12, maxLength: 12 }), (waits, isUp, aside) => {
      let at = 0;
      const moves = waits.map((wait, step): Step => {
        at += wait;
        // It begins up or down, and goes anywhere then.
        return ["move", 200 + (step ? (aside[step] ?? 0) : 0), 400 + (isUp ? -1 : 1) * (step + 1) * 20, at];
      });
      expect(kinds(["down", 200, 400, 0], ...moves, ["up", 200 + (aside[0] ?? 0), 300, at + 1])).toEqual([]);
    }),
  );
});

test("two fingers are never a gesture, whatever they do and whichever leaves first", () => {
  const move = fc.tuple(fc.constantFrom(1, 2), far, far);
  fc.assert(
    fc.property(fc.array(move), within, fc.boolean(), fc.integer({ min: 0, max: 2000 }), (moves, by, isFirst, wait) => {
      const steps = moves.map(([id, x, y], step): Step => ["move", x, y, 20 + wait + step, id]);
      const [one, other] = isFirst ? [1, 2] : [2, 1];
      const end = 3000 + moves.length;
      const found = kinds(
        ["down", 100, 50, 0, 1],
        ["down", 200 + by, 50, 10, 2],
        ...steps,
        ["up", 300, 50, end, one],
        ["move", 100, 50, end + 1, other],
        ["up", 20, 50, end + 2, other],
      );
      expect(found).toEqual([]);
    }),
  );
});

test("a press that has moved is none, and no movement below the least length is a swipe", () => {
  fc.assert(
    fc.property(far, far, fc.integer({ min: 0, max: 3000 }), (x, y, at) => {
      const found = kinds(["down", 200, 400, 0], ["move", 200 + x, 400 + y, at], ["up", 200 + x, 400 + y, at + 1]);
      if (Math.hypot(x, y) > SLOP) expect(found).not.toContain("press");
      if (Math.abs(x) < LENGTH || Math.abs(x) < 2 * Math.abs(y)) expect(found).not.toContain("swipe");
      expect(found).not.toContain("double");
    }),
  );
});

test("after any input a swipe is recognised again once all fingers have left", () => {
  const type = fc.constantFrom<Touch["type"]>("down", "move", "up", "cancel", "menu");
  const any = fc.record({ type, id: fc.integer({ min: 1, max: 3 }), x: far, y: far, at: fc.nat(9000) });
  fc.assert(
    fc.property(fc.array(any), (touches) => {
      const recogniser = new Recogniser();
      for (const touch of touches) recogniser.take(touch, WIDTH);
      for (const id of [1, 2, 3]) recogniser.take({ type: "cancel", id, x: 0, y: 0, at: 9000 }, WIDTH);
      recogniser.take({ type: "down", id: 4, x: 100, y: 50, at: 20_000 }, WIDTH);
      recogniser.take({ type: "move", id: 4, x: 200, y: 50, at: 20_050 }, WIDTH);
      const found = recogniser.take({ type: "up", id: 4, x: 200, y: 50, at: 20_060 }, WIDTH);
      expect(found).toMatchObject({ kind: "swipe", direction: "right" });
    }),
  );
});
