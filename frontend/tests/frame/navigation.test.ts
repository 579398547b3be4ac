import { expect, it } from "vitest";
import { listed } from "../../src/frame/navigation.ts";
import type { SessionFacts, SessionState } from "../../src/server/sessions.ts";

const session = (contextId: string, state: SessionState) => ({ contextId, state }) as SessionFacts;

it("lists the sessions that wait first, then those at work, each as they were changed", () => {
  const states: SessionState[] = ["done", "working", "failed", "waiting", "working", "waiting"];
  const all = states.map((state, at) => session(String(at), state));
  expect(listed(all).map(({ contextId }) => contextId)).toEqual(["3", "5", "1", "4", "0", "2"]);
});

it("lists one that waits also behind many that are done", () => {
  const done = Array.from({ length: 40 }, (_, at) => session(`done ${at}`, "done"));
  const names = listed([...done, session("old", "waiting")]).map(({ contextId }) => contextId);
  expect(names).toHaveLength(12);
  expect(names[0]).toBe("old");
});
