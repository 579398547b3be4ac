import { expect, it } from "vitest";
import asking from "../../../src/isthmus/tools/ask_user.py?raw";
import loops from "../../../src/isthmus/agent/coding/loop_guard.py?raw";
import outside from "../../../src/isthmus/agent/approval/outside_reads.py?raw";
import policy from "../../../src/isthmus/agent/approval/policy.py?raw";
import privateReads from "../../../src/isthmus/agent/approval/private_reads.py?raw";
import servers from "../../../src/isthmus/mcp_host/elicitation/server_questions.py?raw";
import trials from "../../../src/isthmus/agent/calls/trying.py?raw";
import { NAMED, fullWordsOf, wordsOf } from "../../src/questions/option-words.ts";

const SOURCES = [policy, privateReads, outside, trials, loops, servers, asking];

it.each([
  [{ id: "proceed_once", name: "Allow once" }, "Allow once", ""],
  [{ id: "proceed_always_tool", name: "x", covers: "write_file" }, "Allow write_file", "this session"],
  [
    { id: "proceed_always_prefix", name: "x", covers: "git status, ls" },
    "Allow git status, ls …",
    "in this folder, this session",
  ],
  [{ id: "proceed_always_server", name: "x", covers: "tickets" }, "Allow all tools of tickets", "this session"],
  [{ id: "proceed_always_and_save", name: "x", covers: "a" }, "Allow a from now on", "until its server changes it"],
])("words an answer of our agent: %j", (option, words, limit) => {
  expect(wordsOf(option)).toEqual({ words, limit });
});

it("says in a sentence how far an answer reaches", () => {
  const covers = "write_file";
  expect(fullWordsOf({ id: "proceed_always_tool", name: "x", covers })).toBe("Allow write_file, this session");
  expect(fullWordsOf({ id: "proceed_once", name: "Allow once" })).toBe("Allow once");
});

it.each([
  { id: "proceed_once", name: "Deploy to production" },
  { id: "cancel", name: "Not today" },
  { id: "proceed_always_tool", name: "Always allow" },
  { id: "allow_always", name: "Yes, and don't ask again", kind: "allow_always", covers: "ls" },
  { id: "constructor", name: "toString" },
  { id: "proceed_once", name: "constructor" },
])("keeps the name of an answer of another agent: %j", (option) => {
  expect(wordsOf(option)).toEqual({ words: option.name, limit: "" });
});

it("shows what a name hides", () => {
  expect(wordsOf({ id: "x", name: "Al\u200blow" }).words).toBe("Al\\u{200b}low");
  expect(wordsOf({ id: "proceed_always_tool", name: "", covers: "a\u202eb" }).words).toContain("\\u{202e}");
});

it("knows the names that our agent has, and no others", () => {
  const names = Object.values(NAMED).flatMap((named) => Object.keys(named));
  for (const name of names)
    expect(
      SOURCES.some((source) => source.includes(`"${name}"`)),
      name,
    ).toBe(true);
});
