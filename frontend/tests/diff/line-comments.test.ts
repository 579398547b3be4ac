import { expect, it } from "vitest";
import { commentText, newComment, saidComments } from "../../src/diff/line-comments.ts";

it("comments go to the agent in the order of their lines, those that say something", () => {
  const comments = [
    { ...newComment({ side: "new", line: 9 }), text: "why\r\nso?" },
    { ...newComment({ side: "new", line: 3 }), text: "  " },
    { ...newComment({ side: "new", line: 2 }), text: " now " },
    { ...newComment({ side: "old", line: 2 }), text: "before" },
  ];
  expect(commentText("a.py", comments)).toBe("a.py:2 (the line as it was): before\na.py:2: now\na.py:9: why\n  so?");
  expect(saidComments(comments)).toHaveLength(3);
  expect(new Set(comments.map((one) => one.id)).size).toBe(4);
});
