import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { inject } from "./support/navigator.ts";

type Words = typeof import("../src/words.ts");

/** Return the module as a user with these languages gets it. */
async function wordsFor(...languages: string[]): Promise<Words> {
  inject(languages);
  vi.resetModules();
  return import("../src/words.ts");
}

const places = (text: string): string[] => [...new Set(text.match(/\{\d\}/g))].sort();

describe("the texts of the page", () => {
  it("are there in both languages, with the same places, in order from 0", async () => {
    const { TABLE } = await wordsFor("en");
    const { TABLE: forms } = await import("../src/forms/words.ts");
    const entries = Object.entries({ ...TABLE, ...forms });
    expect(entries.length).toBeGreaterThan(400);
    for (const [name, texts] of entries) {
      expect(texts, name).toHaveLength(2);
      const [english, chinese] = texts;
      expect(english.trim(), name).not.toBe("");
      expect(english, name).not.toMatch(/\p{Script=Han}/u);
      expect(chinese, name).toMatch(/\p{Script=Han}/u);
      expect(places(chinese), name).toEqual(places(english));
      expect(places(english), name).toEqual(places(english).map((_, at) => `{${at}}`));
    }
  });

  it("have no places left when as many values are given as they have", async () => {
    const { TABLE, t } = await wordsFor("zh-CN");
    for (const [name, [english]] of Object.entries(TABLE)) {
      const values = places(english).map((_, at) => `value ${at}`);
      const text = t(name as keyof typeof TABLE, ...values);
      expect(text, name).not.toMatch(/\{\d\}/);
      for (const value of values) expect(text, name).toContain(value);
    }
  });

  it.each([
    [["de-DE", "zh-TW", "en"], "zh-CN"],
    [["zh"], "zh-CN"],
    [["en-GB", "zh"], "en"],
    [["fr"], "en"],
    [[], "en"],
  ])("are for a user who reads %j in %s", async (languages, expected) => {
    expect((await wordsFor(...languages)).LANGUAGE).toBe(expected);
  });

  it("take a value as it is, also one that looks like a place", async () => {
    const { t } = await wordsFor("en");
    fc.assert(
      fc.property(fc.string(), (value) => {
        expect(t("wait", value)).toBe(`${value} wait`);
      }),
    );
    expect(t("wait", "$& {1}")).toBe("$& {1} wait");
  });
});

describe("an age", () => {
  let age: Words["age"];
  beforeEach(async () => {
    ({ age } = await wordsFor("en"));
  });

  it.each([
    [9, "now"],
    [59, "50 s"],
    [60, "1 min"],
    [3599, "59 min"],
    [3600, "1 h"],
    [86_399, "23 h"],
    [86_400, "1 d"],
  ])("of %i seconds is said as %j", (seconds, words) => {
    expect(age(0, seconds * 1000)).toBe(words);
  });

  it("is never negative", () => {
    expect(age(5000, 0)).toBe("now");
  });
});
