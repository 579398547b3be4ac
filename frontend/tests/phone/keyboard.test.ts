import { describe, expect, it } from "vitest";
import { seenAbove } from "../../src/phone/keyboard.ts";

describe("a keyboard that covers a part of the page", () => {
  it("leaves what can be seen, also where the browser has moved the page", () => {
    const seen = { height: 460, top: 90 };
    expect(seenAbove(844, seen, 1)).toEqual(seen);
  });

  it("is none where the page shrinks, where a bar comes, or where the user has enlarged the page", () => {
    expect(seenAbove(460, { height: 460, top: 0 }, 1)).toBeUndefined();
    expect(seenAbove(844, { height: 788, top: 0 }, 1)).toBeUndefined();
    expect(seenAbove(844, { height: 422, top: 0 }, 2)).toBeUndefined();
  });
});
