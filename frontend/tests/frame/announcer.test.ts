import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Announcer } from "../../src/frame/announcer.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  vi.stubGlobal("window", globalThis);
});
afterEach(() => {
  vi.useRealTimers();
});

it("of several texts within the pause only the last one is said", () => {
  const said: string[] = [];
  const announcer = new Announcer((text) => said.push(text));
  announcer.announce("one");
  vi.advanceTimersByTime(0);
  expect(said).toEqual(["one"]);
  for (const text of ["two", "three", "four"]) announcer.announce(text);
  vi.advanceTimersByTime(4_999);
  expect(said).toEqual(["one"]);
  vi.advanceTimersByTime(1);
  expect(said).toEqual(["one", "four"]);
});
