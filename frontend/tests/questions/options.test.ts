import { expect, it } from "vitest";
import { isOnce, isRefusal, kindOf } from "../../src/questions/options.ts";

it.each([
  ["proceed_once", true, false],
  ["allow_once", true, false],
  ["proceed_always", false, false],
  ["allow_always", false, false],
  ["cancel", false, true],
  ["reject_once", false, true],
  ["reject_always", false, true],
  ["do_not_reject", false, false],
  ["", false, false],
])("the answer %j: once %s, a refusal %s", (id, once, refusal) => {
  expect(isOnce({ id, name: "Reject" })).toBe(once);
  expect(isRefusal({ id, name: "Allow once" })).toBe(refusal);
});

it("takes the kind that an agent states, whatever the id", () => {
  expect(kindOf({ id: "cancel", name: "", kind: "allow_once" })).toBe("allow_once");
  expect(kindOf({ id: "default", name: "", kind: "reject_once" })).toBe("reject_once");
  expect(kindOf({ id: "proceed_once", name: "", kind: "maybe" })).toBe("allow_once");
  expect(kindOf({ id: "choice_1", name: "" })).toBe("");
  expect(kindOf({ id: "proceed_always_prefix", name: "" })).toBe("allow_always");
});
