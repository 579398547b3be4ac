// @vitest-environment happy-dom
// A key that is held: what its repetitions do.

import { beforeAll, describe, expect, it } from "vitest";
import { watchKeys } from "../../src/frame/keys.ts";

beforeAll(watchKeys);

/** Press a key in an element; return whether it does there what the browser does with it. */
function press(target: Element, key: string, repeat = false): boolean {
  return target.dispatchEvent(new KeyboardEvent("keydown", { key, repeat, bubbles: true, cancelable: true }));
}

describe("a letter that is held", () => {
  it("writes nothing into a field that it has opened", () => {
    const [main, field, box] = ["main", "textarea", "input"].map((name) => document.createElement(name)) as [
      HTMLElement,
      HTMLElement,
      HTMLInputElement,
    ];
    box.type = "checkbox";
    document.body.append(main, field, box);
    expect(press(main, "n")).toBe(true);
    expect(press(field, "n", true)).toBe(false);
    expect(press(box, "n", true)).toBe(true);
    expect(press(field, "n")).toBe(true);
    expect(press(field, "n", true)).toBe(true);
  });
});
