// @vitest-environment happy-dom
import { expect, it, vi } from "vitest";
import { afterPress } from "../../src/parts/presses.ts";

it("acts at once while nothing is pressed", () => {
  const act = vi.fn();
  afterPress(act);
  expect(act).toHaveBeenCalledOnce();
});

it.each(["pointerup", "pointercancel"])("acts once after the click of a press that ends with %s", async (end) => {
  const order: string[] = [];
  const act = vi.fn(() => order.push("act"));
  dispatchEvent(new Event("pointerdown"));
  afterPress(act);
  expect(act).not.toHaveBeenCalled();
  dispatchEvent(new Event(end));
  order.push("click");
  await vi.waitFor(() => expect(act).toHaveBeenCalledOnce());
  dispatchEvent(new Event(end));
  await new Promise((resolve) => setTimeout(resolve));
  expect(act).toHaveBeenCalledOnce();
  expect(order).toEqual(["click", "act"]);
});
