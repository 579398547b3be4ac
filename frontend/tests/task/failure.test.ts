import { describe, expect, it } from "vitest";
import { waitUntil } from "../../src/task/failure.ts";

describe("the reason of a failure", () => {
  const said = (wait: string) => `Gemini limits the rate of requests (HTTP 429)${wait}: slow down`;

  it("says from when on the provider takes requests again", () => {
    expect(waitUntil(said("; it asks to wait 90 s"), 1_000, 2_000)).toBe(91_000);
    expect(waitUntil(said("; it asks to wait 1.5 s"), 1_000, 2_000)).toBe(2_500);
  });

  it("says nothing where no time is known, it is over, or it is beyond reason", () => {
    expect(waitUntil(said(""), 1_000, 2_000)).toBe(0);
    expect(waitUntil(said("; it asks to wait 90 s"), 1_000, 91_000)).toBe(0);
    expect(waitUntil(said("; it asks to wait 90 s"), 0, 0)).toBe(0);
    expect(waitUntil(said("; it asks to wait 1e+09 s"), 1_000, 2_000)).toBe(0);
  });
});
