import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LONGEST_SOUGHT, SOUGHT_STATES, queryOf, routeOf, soughtIn, titleOf } from "../src/routes.ts";
import { decoded } from "../src/server/sessions.ts";

describe("the page at an address", () => {
  it.each([
    ["", "inbox", ""],
    ["history", "history", ""],
    ["files", "files", ""],
    ["task/abc", "task", "abc"],
    ["diff/abc", "diff", "abc"],
    ["written/abc", "written", "abc"],
    ["question/a%2Fb", "inbox", "a/b"],
    ["history/", "history", ""],
    ["task/", "unknown", ""],
    ["question/", "unknown", ""],
    ["task/a/b", "unknown", ""],
    ["taskx/a", "unknown", ""],
    ["constructor", "unknown", ""],
  ])("%j is %s %j", (path, name, id) => {
    expect(routeOf(path)).toEqual({ name, id });
  });

  it("is one of them, whatever the address is", () => {
    fc.assert(
      fc.property(fc.webPath(), (path) => {
        const { name, id, session } = routeOf(path.slice(1));
        const kind = name === "inbox" ? "question" : name;
        expect(id === "" || decoded(path) === `/${kind}/${id}`).toBe(true);
        expect(session !== undefined).toBe(name === "session");
      }),
    );
  });
});

it.each([
  ["session/a%2Fb", { contextId: "a/b", turn: "" }],
  ["session/a/turn/4", { contextId: "a", turn: 4 }],
  ["session/a/b", { contextId: "a", turn: "b" }],
])("the address %j is of a session", (path, session) => {
  expect(routeOf(path)).toEqual({ name: "session", id: "", session });
});

describe("what is sought in the history", () => {
  it("is read from the address that it is written to", () => {
    const words = fc.string({ unit: "grapheme", maxLength: 20 }).filter((one) => one.trim() !== "" || one === "");
    fc.assert(
      fc.property(words, fc.constantFrom(...SOUGHT_STATES), (words, state) => {
        const query = queryOf({ words, state });
        expect(soughtIn(new URL(`http://host/ui/history${query}`).search)).toEqual({ words, state });
      }),
    );
  });

  it.each([
    ["", "", ""],
    ["?state=gone&other=1", "", ""],
    ["?words=a%20b&state=archived", "a b", "archived"],
    [`?words=${"a".repeat(LONGEST_SOUGHT + 1)}`, "a".repeat(LONGEST_SOUGHT), ""],
  ])("is nothing that no address of ours says: %j", (query, words, state) => {
    expect(soughtIn(query)).toEqual({ words, state });
  });

  it("leaves an address without a query if it is nothing", () => {
    expect(queryOf({ words: " ", state: "" })).toBe("");
  });
});

describe("the title of a page", () => {
  it.each([
    ["inbox", "", 0, "", "Inbox \u00b7 Isthmus"],
    ["inbox", "", 3, "", "Inbox (3) \u00b7 Isthmus"],
    [
      "inbox",
      "Late midnight ferries",
      3,
      "Change schedule.py",
      "Change schedule.py \u00b7 Late midnight ferries (3) \u00b7 Isthmus",
    ],
    ["inbox", "", 1, "Which release?", "Which release? \u00b7 Inbox (1) \u00b7 Isthmus"],
    ["task", "Fix the\nparser", 1, "", "Fix the parser (1) \u00b7 Isthmus"],
    ["session", "Tide tables", 3, "Run psql", "Run psql \u00b7 Tide tables (3) \u00b7 Isthmus"],
    ["session", "", 0, "", "Session \u00b7 Isthmus"],
    ["new", "", 0, "", "New session \u00b7 Isthmus"],
    ["diff", "Fix it", 0, "", "Changes of the session \u00b7 Fix it \u00b7 Isthmus"],
    ["tools", "", 0, "", "Servers and tools \u00b7 Isthmus"],
    ["devices", "", 0, "", "Devices \u00b7 Isthmus"],
    ["unknown", "", 2, "", "No such page (2) \u00b7 Isthmus"],
  ] as const)("%s about %j with %i that wait, asked %j, is %j", (name, about, waiting, asked, title) => {
    expect(titleOf(name, { about, waiting, asked })).toBe(title);
  });

  it("hides nothing of a session's title, and is short", () => {
    expect(titleOf("task", { about: "a\u202eb", waiting: 0 })).toBe("a\\u{202e}b \u00b7 Isthmus");
    const long = "x".repeat(500);
    expect(titleOf("task", { about: long, waiting: 0, asked: long }).length).toBeLessThan(200);
  });
});
