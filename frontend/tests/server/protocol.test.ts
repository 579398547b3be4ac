import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EXTENSION, eventsOf, rowOf } from "../../src/server/protocol.ts";

const update = (kind: string, own: object, message: object = {}, state = "WORKING"): unknown => ({
  statusUpdate: {
    status: { state: `TASK_STATE_${state}`, timestamp: "2025-01-01T00:00:00Z", message },
    metadata: { [EXTENSION]: { kind, ...own } },
  },
});
const AT = Date.UTC(2025, 0, 1);

describe("the events of a stream", () => {
  it("are read from what the server sends", () => {
    expect(eventsOf(update("STATE_CHANGE", { error: "no" }, {}, "INPUT_REQUIRED"))).toEqual([
      { kind: "state", state: "input-required", error: "no", reason: "", pending: [], at: AT },
    ]);
    const message = { messageId: "m", parts: [{ text: "a" }, { url: "http://x", filename: "f" }, { raw: "" }] };
    expect(eventsOf(update("TEXT_CONTENT", { replaces_message_id: "old" }, message))).toEqual([
      { kind: "text", messageId: "m", text: "a[f][file]", replaces: "old", at: AT },
    ]);
    const answer = { parts: [{ data: { tool_call_id: "c", selected_option_id: "o" } }] };
    expect(eventsOf(update("TOOL_CALL_CONFIRMATION", { answered_by: "phone" }, answer))).toEqual([
      { kind: "answered", callId: "c", optionId: "o", by: "phone", at: AT },
    ]);
  });

  it("tell of checkpoints and usage before the event that they came with", () => {
    const own = {
      checkpoints: [{ tool_call_id: "c", checkpoint_id: "p" }],
      usage: { input_tokens: 3, output_tokens: -1, cost: { amount: 0.5 } },
    };
    expect(eventsOf(update("THOUGHT", own)).map((event) => event.kind)).toEqual(["checkpoint", "usage", "thought"]);
    expect(eventsOf(update("THOUGHT", { usage: { output_tokens: 1 } }))).toHaveLength(2);
    expect(eventsOf(update("THOUGHT", own))[1]).toEqual({
      kind: "usage",
      usage: { input: 3, output: 0, cached: 0, thought: 0, cost: 0.5, unpriced: 0 },
    });
  });

  it("begin with the prompts of a task, or with the command that it runs", () => {
    const task = { id: "t", status: {}, metadata: { [EXTENSION]: { title: "/diff" } } };
    expect(eventsOf({ task })).toMatchObject([{ kind: "prompt", messageId: "t", text: "/diff" }]);
    const history = [
      { role: "ROLE_USER", messageId: "m", parts: [{ text: "go" }] },
      { role: "ROLE_AGENT", messageId: "n", parts: [{ text: "yes" }] },
    ];
    expect(eventsOf({ task: { ...task, history } })).toMatchObject([{ kind: "prompt", messageId: "m", text: "go" }]);
  });

  it("are none of what the page does not know, and of nothing that it is sent an error", () => {
    expect(eventsOf(update("SOMETHING_NEW", {}))).toEqual([]);
    const keys = fc.constantFrom("task", "statusUpdate", "status", "message", "parts", "data", "metadata", EXTENSION);
    const kinds = fc.constantFrom("STATE_CHANGE", "TEXT_CONTENT", "THOUGHT", "TOOL_CALL_UPDATE", "x");
    const { any } = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 6 },
        fc.anything({ maxDepth: 0 }),
        kinds,
        fc.dictionary(keys, tie("any")),
        fc.array(tie("any"), { maxLength: 2 }),
        fc.record({ kind: kinds, usage: tie("any"), checkpoints: tie("any") }),
      ),
    }));
    fc.assert(
      fc.property(any, (item) => {
        for (const event of eventsOf(item)) expect(event.kind).toBeTypeOf("string");
        expect(rowOf(item).id).toBeTypeOf("string");
      }),
    );
  });
});

it("a row has the calls that wait, and nothing else", () => {
  const parts = [{ data: { tool_call_id: "c", tool_name: "x" } }, { data: { tool_call_id: 1 } }, { text: "a" }, null];
  const task = { id: "t", contextId: "s", status: { state: "TASK_STATE_INPUT_REQUIRED", message: { parts } } };
  expect(rowOf(task)).toMatchObject({ id: "t", contextId: "s", state: "input-required", createdAt: 0 });
  expect(rowOf(task).pending).toEqual([{ tool_call_id: "c", tool_name: "x" }]);
});
