import { expect, it } from "vitest";
import type { ToolCall } from "../../src/server/protocol.ts";
import { risksOf } from "../../src/questions/risks.ts";

const asked = (risks: unknown): ToolCall => ({
  tool_call_id: "c",
  status: "PENDING",
  tool_name: "run_shell_command",
  confirmation_request: { options: [], risks: risks as string[] },
});

it("names the risks that are stated, in one order, and leaves out what it does not know", () => {
  expect(risksOf(asked(["no_sandbox", "deletes", "to_the_moon"]))).toEqual(["deletes", "not in a sandbox"]);
});

it.each([undefined, [], "deletes", { deletes: true }])("states none for %j", (risks) => {
  expect(risksOf(asked(risks))).toEqual([]);
});
