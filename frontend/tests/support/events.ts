// Events and calls with what a test does not care about filled in.

import type { CallStatus, TaskEvent, TaskRow, ToolCall } from "../../src/server/protocol.ts";

export function row(id: string, more: Partial<TaskRow> = {}): TaskRow {
  return {
    id,
    contextId: "session",
    state: "working",
    changedAt: 0,
    createdAt: 0,
    title: "",
    workspace: "/work",
    model: "",
    parent: "",
    error: "",
    seq: 0,
    pending: [],
    ...more,
  };
}

export function call(id: string, status: CallStatus, more: Partial<ToolCall> = {}): ToolCall {
  return { tool_call_id: id, status, tool_name: "read_file", ...more };
}

/** Return the event that a call has now this status. */
export function called(id: string, status: CallStatus, more: Partial<ToolCall> = {}, seq = 1): TaskEvent {
  return { kind: "call", call: call(id, status, more), at: seq, seq };
}

/** Return the event of a call that asks the user. */
export function asked(id: string, more: Partial<ToolCall> = {}): TaskEvent {
  return called(id, "PENDING", { confirmation_request: { options: [{ id: "proceed_once", name: "Allow" }] }, ...more });
}

export function written(id: string, text: string, replaces = ""): TaskEvent {
  return { kind: "text", messageId: id, text, replaces, at: 0 };
}

export function turned(state: TaskRow["state"], error = ""): TaskEvent {
  return { kind: "state", state, error, reason: "", pending: [], at: 0 };
}

export function answered(callId: string, by: string, optionId = "proceed_once"): TaskEvent {
  return { kind: "answered", callId, optionId, by, at: 0 };
}
