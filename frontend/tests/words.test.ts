import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import english from "virtual:languages/texts-en";
import simplified from "virtual:languages/texts-zh-Hans";
import { inject } from "./support/navigator.ts";

type Words = typeof import("../src/words.ts");

/** Return the module as a user with these languages gets it. */
async function wordsFor(...languages: string[]): Promise<Words> {
  inject(languages);
  vi.resetModules();
  return import("../src/words.ts");
}

const SOURCES = import.meta.glob<string>(["../src/**/*.ts", "!**/words.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

const places = (text: string): string[] => [...new Set(text.match(/\{\d\}/g))].sort();

describe("the texts of the page", () => {
  it("are each named by a module of the page", () => {
    const named = new Set(Object.values(SOURCES).flatMap((source) => source.match(/(?<=["'`])\w+(?=["'`])/g) ?? []));
    // Words of an age, which words.ts itself uses.
    const own = new Set(["seconds", "minutes", "hours", "days"]);
    const keys = Object.values(english).flatMap((table) => Object.keys(table));
    expect(keys.filter((key) => !named.has(key) && !own.has(key))).toEqual([]);
  });

  it("are there in both languages, with the same places, in order from 0", () => {
    const texts = Object.entries(english).flatMap(([source, table]) =>
      Object.entries(table).map(([key, text]) => [key, text, simplified[source]?.[key] ?? ""] as const),
    );
    expect(texts.length).toBeGreaterThan(400);
    for (const [name, text, chinese] of texts) {
      expect(text.trim(), name).not.toBe("");
      expect(text, name).not.toMatch(/\p{Script=Han}/u);
      if (/\p{L}/u.test(text)) expect(chinese, name).toMatch(/\p{Script=Han}/u);
      expect(places(chinese), name).toEqual(places(text));
      expect(places(text), name).toEqual(places(text).map((_, at) => `{${at}}`));
    }
  });

  it("have no places left when as many values are given as they have", async () => {
    const { t } = await wordsFor("zh-CN");
    for (const [name, text] of Object.entries(english["words.ts"] ?? {})) {
      const values = places(text).map((_, at) => `value ${at}`);
      const filled = t(name as Parameters<typeof t>[0], ...values);
      expect(filled, name).not.toMatch(/\{\d\}/);
      for (const value of values) expect(filled, name).toContain(value);
    }
  });

  it.each([
    ["en", "Devices"],
    ["zh-CN", "设备"],
    ["zh-TW", "裝置"],
  ])("are for a user who reads %s in this language alone", async (tag, expected) => {
    const { t, TABLE } = await wordsFor(tag);
    expect(t("devices")).toBe(expected);
    expect(TABLE.devices).toBe(expected);
  });

  it("have numbers as the language of the page writes them, not the machine", async () => {
    const { t } = await wordsFor("en", "de-DE");
    expect(t("fetched", 1234567)).toBe("1,234,567 events fetched");
  });

  it("take a value as it is, also one that looks like a place", async () => {
    const { t } = await wordsFor("en");
    fc.assert(
      fc.property(fc.string(), (value) => {
        expect(t("wait", value)).toBe(`${value} waiting`);
      }),
    );
    expect(t("wait", "$& {1}")).toBe("$& {1} waiting");
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
