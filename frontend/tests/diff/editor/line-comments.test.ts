import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anchored, commentText, lineOf, newComment, saidComments } from "../../../src/diff/editor/line-comments.ts";

const on = (side: "old" | "new", line: number, text: string, quote = "") => ({
  ...newComment({ side, line }, quote),
  text,
});

describe("comments for the agent", () => {
  it("are in the order of their lines, those that say something", () => {
    const comments = [on("new", 9, "why\r\nso?"), on("new", 3, "  "), on("new", 2, " now "), on("old", 2, "before")];
    expect(saidComments(comments)).toHaveLength(3);
    expect(new Set(comments.map((one) => one.id)).size).toBe(4);
    expect(commentText("a.py", comments)).toBe(
      "a.py:2 (the line as it was)\nbefore\n\na.py:2 (the line as you proposed it)\nnow\n\n" +
        "a.py:9 (the line as you proposed it)\nwhy\nso?",
    );
  });

  it("name the line as it is written where a hunk above was kept as it was", () => {
    const comments = [on("new", 6, "Use UTC.", "now()"), on("new", 2, "Why?", "import os")];
    const written = (one: { line: number }) =>
      one.line === 6 ? { line: 4, text: "now()" } : { line: 2, text: "import sys" };
    expect(commentText("a.py", comments, written)).toBe(
      "a.py:2 (the line as you proposed it)\n> import os\nWhy?\n\na.py:4\n> now()\nUse UTC.",
    );
  });

  it("quote the beginning of a long line", () => {
    expect(commentText("a", [on("new", 1, "!", "x".repeat(999))]).length).toBeLessThan(400);
  });
});

describe("the line of a comment", () => {
  it("is the nearest one with what it quotes", () => {
    const comment = on("new", 2, "!", "b");
    expect(anchored([comment], "", "b\nx\ny\nb\n")[0]?.line).toBe(1);
    expect(anchored([comment], "", "x\nb\n")[0]).toBe(comment);
    expect(anchored([comment], "", "x\n")[0]?.line).toBe(1);
    expect(anchored([on("old", 1, "!", "b")], "a\nb", "")[0]?.line).toBe(2);
  });

  it("is found again wherever lines were put before it", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "b", "c")), fc.nat(5), (lines, at) => {
        const text = [...lines, "quoted"].join("\n");
        const [found] = anchored([on("new", at + 1, "!", "quoted")], "", text);
        expect(lineOf(text, found?.line ?? 0)).toBe("quoted");
      }),
    );
  });
});
