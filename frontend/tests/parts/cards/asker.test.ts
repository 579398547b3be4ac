import { expect, it } from "vitest";
import { sheetLines } from "../../../src/parts/cards/asker.ts";
import type { TaskRow, ToolCall } from "../../../src/server/protocol.ts";
import type { SessionList } from "../../../src/server/sessions.ts";
import type { Question } from "../../../src/server/store.ts";

const sessions = { titleOf: () => "Late boats" } as unknown as SessionList;

function placeOf(id: string, description: string): string {
  const call: ToolCall = {
    tool_call_id: id,
    status: "PENDING",
    tool_name: "run_shell_command",
    description,
    input_parameters: {},
    confirmation_request: { options: [], execute_details: { command: "ls" } },
  };
  const question: Question = { task: { id: "t", workspace: "/w", changedAt: 0 } as TaskRow, call, calls: [call] };
  return sheetLines(question, sessions, "Isthmus", 0).place;
}

it("names the subagent that asks, and else the agent", () => {
  expect(placeOf("c1?c2", "reviewer: List the files")).toBe("reviewer, a subagent · Late boats");
  expect(placeOf("c1", "reviewer: List the files")).toBe("Isthmus · Late boats");
});
