import { describe, expect, it } from "vitest";
import { findItems, nextFound } from "../../src/conversation/session-find.ts";
import { TaskFold } from "../../src/task/task-fold.ts";
import { row, written } from "../support/events.ts";

function items() {
  const fold = new TaskFold("task");
  const call = {
    tool_call_id: "c",
    status: "SUCCEEDED" as const,
    tool_name: "run_shell_command",
    input_parameters: { command: "make quay" },
    output: { text: "two boats" },
  };
  fold.apply([
    { kind: "prompt", messageId: "p", text: "Mend the Quay", at: 0, row: row("task") },
    written("t", "The **boats** can land"),
    { kind: "call", call, at: 0 },
    { kind: "thought", subject: "Tides", description: "Low at the quay", at: 0 },
  ]);
  return fold.items;
}

describe("a search in a session", () => {
  it("finds texts, commands, outputs and thoughts in any case", () => {
    expect(findItems(items(), "quay")).toEqual([0, 2, 3]);
    expect(findItems(items(), " BOATS ")).toEqual([1, 2]);
    expect(findItems(items(), "ferry")).toEqual([]);
    expect(findItems(items(), "  ")).toEqual([]);
  });

  it("goes round", () => {
    expect([nextFound([2, 5], 3, 1), nextFound([2, 5], 5, 1), nextFound([2, 5], 2, -1)]).toEqual([1, 0, 1]);
    expect(nextFound([], 0, 1)).toBe(-1);
  });
});
