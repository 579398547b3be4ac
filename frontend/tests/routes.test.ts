import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { routeOf, titleOf } from "../src/routes.ts";
import { decoded } from "../src/sessions.ts";

describe("the page at an address", () => {
  it.each([
    ["", "inbox", ""],
    ["history", "history", ""],
    ["files", "files", ""],
    ["task/abc", "task", "abc"],
    ["diff/abc", "diff", "abc"],
    ["written/abc", "written", "abc"],
    ["question/a%2Fb", "inbox", "a/b"],
    ["task/", "inbox", ""],
    ["question/", "inbox", ""],
    ["task/a/b", "inbox", ""],
    ["taskx/a", "inbox", ""],
    ["history/", "inbox", ""],
    ["constructor", "inbox", ""],
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

describe("the title of a page", () => {
  it.each([
    ["inbox", "", 0, "Inbox - Isthmus"],
    ["inbox", "", 3, "(3) Inbox - Isthmus"],
    ["task", "Fix the\nparser", 1, "(1) Fix the parser - Isthmus"],
    ["session", "Tide tables", 3, "(3) Tide tables - Isthmus"],
    ["session", "", 0, "Session - Isthmus"],
    ["new", "", 0, "New session - Isthmus"],
    ["diff", "Fix it", 0, "Changes of the session: Fix it - Isthmus"],
    ["tools", "", 0, "Servers and tools - Isthmus"],
    ["devices", "", 0, "Devices - Isthmus"],
  ] as const)("%s about %j with %i that wait is %j", (name, about, waiting, title) => {
    expect(titleOf(name, about, waiting)).toBe(title);
  });

  it("hides nothing of a session's title, and is short", () => {
    expect(titleOf("task", "a\u202eb", 0)).toBe("a\\u{202e}b - Isthmus");
    expect(titleOf("task", "x".repeat(500), 0).length).toBeLessThan(100);
  });
});
