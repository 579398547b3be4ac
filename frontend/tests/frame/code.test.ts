import { describe, expect, it } from "vitest";
import { shownCode, signsOf, toGo } from "../../src/frame/code.ts";

describe("a code that is typed", () => {
  it("has eight signs, however it is written", () => {
    expect(signsOf("k7tf-2qmx")).toBe("K7TF2QMX");
    expect(signsOf(" K7TF 2QMX and more")).toBe("K7TF2QMX");
  });

  it("says how many signs are missing", () => {
    expect([toGo(""), toGo("K7TF-2Q"), toGo("K7TF 2QMX"), toGo("K7TF2QMXX")]).toEqual([8, 2, 0, 0]);
  });

  it("is shown with its halves apart, and read back as the same code", () => {
    expect(shownCode("K7TF2QMX")).toBe("K7TF-2QMX");
    expect(signsOf(shownCode("K7TF2QMX"))).toBe("K7TF2QMX");
  });
});
