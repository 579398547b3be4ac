import { describe, expect, it } from "vitest";
import { type SessionFacts, sessionOf, sessionPath, turnAt, withFirstPage } from "../../src/server/sessions.ts";
import { PAGE } from "../../src/place.ts";

function session(contextId: string, changed: number): SessionFacts {
  return {
    contextId,
    title: contextId,
    given: contextId,
    workspace: "/w",
    agent: "demo",
    state: "done",
    turns: 1,
    began: 0,
    changed,
    questions: 0,
    archived: false,
    task: "t",
  };
}

const names = (sessions: SessionFacts[]) => sessions.map((one) => one.contextId);

describe("addresses of sessions", () => {
  it.each([
    ["a/b c.d?#", ""],
    ["5f-1", "task/1"],
  ])("are read as they were written: %s %s", (contextId, turn) => {
    expect(sessionOf(sessionPath(contextId, turn).slice(PAGE.length))).toEqual({ contextId, turn });
  });

  it("name a turn by its number", () => {
    expect(sessionOf("session/c/turn/4")).toEqual({ contextId: "c", turn: 4 });
    for (const other of ["session/c/turn/0", "session/c/x/4", "session/c/turn/4/5", "session/", "task/c"])
      expect(sessionOf(other)).toBeUndefined();
  });

  it("lead to the turn that is there", () => {
    const tasks = [{ id: "one" }, { id: "two" }];
    expect([turnAt(tasks, 2), turnAt(tasks, 3), turnAt(tasks, "one"), turnAt(tasks, "x")]).toEqual([1, -1, 0, -1]);
  });
});

describe("a new first page", () => {
  const known = [session("a", 9), session("b", 7), session("c", 5), session("d", 3)];

  it("keeps older sessions and drops those that it would have", () => {
    const page = { sessions: [session("d", 10), session("b", 7), session("c", 5)], searched: 3, next: "5_c" };
    expect(names(withFirstPage(known, page))).toEqual(["d", "b", "c"]);
    expect(names(withFirstPage([...known, session("e", 1)], page))).toEqual(["d", "b", "c", "e"]);
  });

  it("is all there is without a next one", () => {
    expect(names(withFirstPage(known, { sessions: [session("a", 9)], searched: 1, next: "" }))).toEqual(["a"]);
  });
});
