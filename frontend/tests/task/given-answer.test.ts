import { describe, expect, it } from "vitest";
import { type GivenAnswer, answerWords } from "../../src/task/given-answer.ts";
import { clock } from "../../src/words.ts";

const at = Date.now();
const time = clock(at / 1000);
const given = (more: Partial<GivenAnswer>): GivenAnswer => ({
  by: "",
  optionId: "proceed_once",
  at,
  isEdited: false,
  ...more,
});
const words = (more: Partial<GivenAnswer>, isQuestion = false) =>
  answerWords(given(more), isQuestion, "Chrome on Linux");

describe("an answer in the row of its call", () => {
  it("says where it was given, and when", () => {
    expect(words({ by: "Safari on iPhone" })).toBe(`allowed on your phone, ${time}`);
    expect(words({ by: "Chrome on Android" })).toBe(`allowed on your phone, ${time}`);
    expect(words({ by: "terminal" })).toBe(`allowed in the terminal, ${time}`);
    expect(words({ by: "Chrome on Linux" })).toBe(`allowed here, ${time}`);
    expect(words({ by: "Neovim" })).toBe(`allowed in Neovim, ${time}`);
    expect(words({ at: 0 })).toBe("allowed by another client");
  });

  it("says what was answered", () => {
    expect(words({ optionId: "cancel", by: "terminal" })).toBe(`rejected in the terminal, ${time}`);
    expect(words({ optionId: "choice_1", by: "terminal" }, true)).toBe(`answered in the terminal, ${time}`);
    expect(words({ isEdited: true, by: "terminal" })).toBe(`accepted with your change, ${time}`);
  });

  it("shows what hides in a name, and never a long one", () => {
    expect(words({ by: `a\u202eb${"x".repeat(200)}` })).toMatch(/^allowed in a\\u\{202e\}bx{40,50}…, /);
  });
});
