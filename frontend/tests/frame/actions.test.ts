import { describe, expect, it } from "vitest";
import { found, keyActions, pageActions, sessionAction } from "../../src/frame/actions.ts";
import { KEYS, keysLine, placesOn } from "../../src/frame/key-table.ts";
import type { SessionFacts } from "../../src/server/sessions.ts";

const ALL = { tasks: true, files: true, written: true };
const session = { contextId: "c", title: "Late midnight ferries", workspace: "/home/ann/harbour" } as SessionFacts;

describe("the actions", () => {
  const actions = [...pageActions(ALL, true, "one"), sessionAction(session)];

  it.each([
    ["hist", ["History"]],
    ["harbour midnight", ["Late midnight ferries"]],
    ["SERV", ["Servers and tools"]],
    ["no such thing", []],
  ])("for %j are %j", (typed, names) => {
    expect(found(actions, typed).map(({ name }) => name)).toEqual(names);
  });

  it("begin with those whose names begin with what was typed", () => {
    const [first] = found([...actions, { ...sessionAction(session), name: "The new tide" }], "new");
    expect(first?.name).toBe("New session");
  });

  it("lead to the session and the companion that they name", () => {
    expect(sessionAction(session).path).toBe(
      "/ui/session/c".replace("/ui/", sessionAction(session).path?.split("session")[0] ?? ""),
    );
    expect(pageActions(ALL, true, "a/b").find(({ shown }) => shown === "g w")?.path).toMatch(/written\/a%2Fb$/);
  });

  it("are not offered for what the page has not", () => {
    const names = pageActions({ tasks: false, files: false, written: false }, true, "").map(({ name }) => name);
    expect(names).toEqual(["Inbox", "Devices"]);
    expect(pageActions(ALL, false, "").map(({ name }) => name)).not.toContain("Settings");
  });

  it("never answer a question: that is left to its card", () => {
    const places = [...new Set(KEYS.map(({ at }) => at))];
    const keys = keyActions(places, ALL).map(({ key }) => key);
    for (const answer of ["y", "n", "t", "1-9", "A", "Send", "Escape Escape"])
      expect(
        keys.filter((key) => key === answer),
        answer,
      ).toHaveLength(answer === "A" ? 1 : 0);
    expect(keys).toContain("i");
  });
});

describe("the keys of here", () => {
  it.each([
    ["inbox", true, "j k move \u00b7 y allow \u00b7 n reject \u00b7 e edit"],
    ["inbox", false, ""],
    ["task", false, "i prompt \u00b7 l model \u00b7 d changes"],
    ["history", false, "/ search \u00b7 j k move"],
    ["devices", false, ""],
  ])("on the page %s, with a question: %s, are %j", (page, hasQuestion, line) => {
    expect(keysLine(placesOn(page, hasQuestion), ALL)).toBe(line);
  });
});
