import { describe, expect, it } from "vitest";
import { childOf, ownWords, subagentOf } from "../../src/task/subagents.ts";
import { call, row } from "../support/events.ts";

// The ids and descriptions are those of isthmus/agent/calls/relayed_questions.py and execution.py.
const relayed = call("call_1?call_7", "PENDING", { tool_name: "write_file", description: "reviewer: Write notes.md" });

describe("a question of a subagent", () => {
  it("names it", () => {
    expect(subagentOf(relayed)).toBe("reviewer");
    expect(ownWords(relayed)).toBe("Write notes.md");
    expect(subagentOf({ ...relayed, tool_call_id: "call_1?call_7#2" })).toBe("reviewer");
  });

  it("shows what hides in the name, and never a long one", () => {
    expect(subagentOf({ ...relayed, description: `re\u202eviewer${"x".repeat(500)}: no` })).toMatch(/^re\\u\{202e\}/);
    expect(subagentOf({ ...relayed, description: "x".repeat(500) + ": no" }).length).toBeLessThanOrEqual(60);
  });

  it("is none of the agent's own calls, nor what a server or the loop guard asks in one", () => {
    expect(subagentOf(call("call_1", "PENDING", { description: "a: b" }))).toBe("");
    expect(ownWords(call("call_1", "PENDING", { description: "a: b" }))).toBe("a: b");
    const ofServer = { tool_name: "elicitation", description: "tickets: which release?" };
    expect(subagentOf(call("call_1?1", "PENDING", { ...ofServer, input_parameters: { asked_in: "t" } }))).toBe("");
    expect(subagentOf(call("call_1?call_2%3F1", "PENDING", { ...ofServer, input_parameters: { asked_in: "t" } }))).toBe(
      "tickets",
    );
    expect(subagentOf(call("x?loop", "PENDING", { tool_name: "continue_repeating", description: "a: b" }))).toBe("");
  });
});

describe("the task of a subagent", () => {
  it("is found by the first line of what it was told, which is its title", () => {
    const told = (prompt: string) =>
      call("c", "EXECUTING", { tool_name: "invoke_agent", input_parameters: { agent_name: "reviewer", prompt } });
    const children = [
      row("one", { title: "reviewer: Read a.py" }),
      row("two", { title: `reviewer: ${"x".repeat(79)}\u2026` }),
    ];
    expect(childOf(told("\nRead a.py\nthen say what it does"), children)).toBe("one");
    expect(childOf(told("x".repeat(500)), children)).toBe("two");
    expect(childOf(told("Read b.py"), children)).toBeUndefined();
    expect(childOf(call("c", "EXECUTING"), children)).toBeUndefined();
  });
});
