import { expect, it } from "vitest";
import { isOnce, isRefusal } from "../src/options.ts";

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
