import { describe, expect, it } from "vitest";
import { LIMITS, fitsEditor, isLongText, mustBeSeen } from "../../src/diff/change-size.ts";

const lines = (count: number, word = "a"): string => `${word}\n`.repeat(count);

describe("a change must be seen as a whole", () => {
  it.each([
    ["with one changed line more than the limit", lines(LIMITS.lines + 1), true],
    ["with as many changed lines as the limit", lines(LIMITS.lines), false],
    ["with a line over the limit", `${"x".repeat(LIMITS.line)}\n`, true],
    ["with a line at the limit", `${"x".repeat(LIMITS.line - 1)}\n`, false],
    ["with more characters than the limit", lines(LIMITS.characters / 2 + 1), true],
  ])("%s: %#", (_, text, expected) => {
    expect(mustBeSeen("", text)).toBe(expected);
    expect(mustBeSeen(text, "")).toBe(expected);
  });

  it("only for lines that change", () => {
    const long = `${"x".repeat(LIMITS.line * 2)}\n`;
    expect(mustBeSeen(`${long}a\n`, `${long}b\n`)).toBe(false);
    expect(mustBeSeen(`a\n${long}`, "a\n")).toBe(true);
  });
});

describe("an editor shows a change", () => {
  it.each([
    ["of LF", "a\nb\n", "a\n", true],
    ["of CRLF", "a\r\nb\r\n", "a\r\n", true],
    ["of both", "a\r\nb\n", "a\n", false],
    ["of another kind on each side", "a\r\n", "a\n", false],
    ["with a carriage return of its own", "a\rb", "a", false],
    ["of few characters", "a".repeat(10), "b", true],
    ["of a line that is too long", "a".repeat(20_000), "b", false],
    ["of too many characters", lines(200_001), "b", false],
  ])("%s: %#", (_, before, after, expected) => {
    expect(fitsEditor(before, after)).toBe(expected);
    expect(fitsEditor(after, before)).toBe(expected);
  });
});

it.each([
  [lines(LIMITS.lines), false],
  [lines(LIMITS.lines + 1), true],
  ["x".repeat(LIMITS.line - 1), false],
  ["x".repeat(LIMITS.line), true],
])("a text is long from its limits on: %#", (text, expected) => {
  expect(isLongText(text)).toBe(expected);
});
