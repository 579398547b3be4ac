import { describe, expect, it } from "vitest";
import { languageFor } from "../src/language.ts";

describe("the language of the page", () => {
  it.each([
    [["de-DE", "zh-TW", "en"], "zh-Hant"],
    [["zh"], "zh-Hans"],
    [["zh-CN"], "zh-Hans"],
    [["zh-SG"], "zh-Hans"],
    [["zh-HK"], "zh-Hant"],
    [["zh-mo"], "zh-Hant"],
    [["zh-Hant"], "zh-Hant"],
    [["zh-Hant-CN"], "zh-Hant"],
    [["zh-Hans-TW"], "zh-Hans"],
    [["en-GB", "zh"], "en"],
    [["fr"], "en"],
    [[], "en"],
  ])("for a user who reads %j is %s", (tags, expected) => {
    expect(languageFor(tags)).toBe(expected);
  });
});
