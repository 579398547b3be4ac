import { expect, it, vi } from "vitest";
import { loadPage } from "../src/later-pages.ts";

let isAway = true;
let attempts = 0;

vi.mock("../src/pages/tools-page.ts", () => {
  attempts += 1;
  if (isAway) throw new Error("network");
  return {};
});
vi.mock("../src/pages/devices-page.ts", () => ({}));

it("a page is there once it has come, and then is told once", async () => {
  const then = vi.fn();
  expect(loadPage("devices", then)).toBe(false);
  expect(loadPage("devices", then)).toBe(false);
  await vi.waitFor(() => expect(then).toHaveBeenCalledOnce());
  expect(loadPage("devices", then)).toBe(true);
});

it("a page that did not come is asked for again", async () => {
  const then = vi.fn();
  await vi.waitFor(() => {
    expect(loadPage("tools", then)).toBe(false);
    expect(attempts).toBeGreaterThan(1);
  });
  expect(then).not.toHaveBeenCalled();
  isAway = false;
  await vi.waitFor(() => expect(loadPage("tools", then)).toBe(true));
});

it("a page that is a part of the first load is there", () => {
  expect(loadPage("inbox", () => undefined)).toBe(true);
});
