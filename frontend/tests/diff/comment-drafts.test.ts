// @vitest-environment happy-dom
import { beforeEach, expect, it } from "vitest";
import { keepComments, keptComments } from "../../src/diff/comment-drafts.ts";
import { forget } from "../../src/server/session.ts";
import { newComment } from "../../src/diff/editor/line-comments.ts";

const comment = { ...newComment({ side: "new", line: 2 }, "x = 1"), text: "Why 1?" };
const DAY = 24 * 3600 * 1000;

beforeEach(() => {
  localStorage.clear();
});

it("comments are there again after the page was loaded anew, until they were sent", () => {
  keepComments("task/call", [comment, newComment({ side: "old", line: 1 })]);
  expect(keptComments("task/call")).toMatchObject([{ side: "new", line: 2, text: "Why 1?", quote: "x = 1" }]);
  expect(keptComments("task/other")).toEqual([]);
  keepComments("task/call", []);
  expect(localStorage).toHaveLength(0);
});

it("old ones, and more than 50, are not kept", () => {
  keepComments("old", [comment], Date.now() - 31 * DAY);
  for (let at = 0; at < 60; at += 1) keepComments(`call-${at}`, [comment], Date.now() + at);
  expect(keptComments("old")).toEqual([]);
  expect(keptComments("call-9")).toEqual([]);
  expect(keptComments("call-59")).toHaveLength(1);
});

it("what is stored and is none is passed over", () => {
  for (const text of [
    "no",
    "[]",
    "null",
    '{"b": null}',
    '{"a": 1}',
    '{"a": {"at": 1, "comments": [null, {"side": "new"}, 3]}}',
  ]) {
    localStorage.setItem("isthmus.comments", text);
    expect(keptComments("a")).toEqual([]);
  }
  localStorage.setItem("isthmus.comments", "{}");
  expect(keptComments("constructor")).toEqual([]);
  keepComments("a", [comment]);
  forget();
  expect(keptComments("a")).toEqual([]);
});
