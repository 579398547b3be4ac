import { expect, it } from "vitest";
import { endWords } from "../../src/inbox/end-words.ts";
import { EXTENSION, type ToolCall } from "../../src/server/protocol.ts";
import { pastQuestion } from "../../src/server/task-stream.ts";
import { serve, stream } from "../support/server.ts";

const AT = "2026-11-30T14:03:00Z";

function update(kind: string, data: object, more: object = {}, state = "TASK_STATE_WORKING") {
  return {
    statusUpdate: {
      status: { state, timestamp: AT, message: { parts: [{ data }] } },
      metadata: { [EXTENSION]: { kind, ...more } },
    },
  };
}

const CALL = {
  tool_call_id: "c1",
  tool_name: "write_file",
  status: "PENDING",
  confirmation_request: { options: [], file_edit_details: { file_name: "a", file_path: "/w/a", new_content: "x" } },
};
const other = update("TOOL_CALL_UPDATE", { ...CALL, tool_call_id: "c2" });
const asked = update("TOOL_CALL_UPDATE", CALL);
const ended = update("STATE_CHANGE", {}, {}, "TASK_STATE_CANCELED");
const answered = (option: string, by: string, callId = "c1", file?: string) =>
  update(
    "TOOL_CALL_CONFIRMATION",
    { tool_call_id: callId, selected_option_id: option, ...(file ? { file_details: { new_content: file } } : {}) },
    { answered_by: by },
  );

it("finds the call of a question that was answered, and the first answer to it", async () => {
  const said = serve(() => stream(other, asked, answered("no", "a", "c2"), answered("once", "b"), answered("no", "c")));
  const past = await pastQuestion("t/1", "c1");
  expect(past.call?.tool_call_id).toBe("c1");
  expect(past.answer).toMatchObject({ optionId: "once", by: "b", at: Date.parse(AT) });
  expect(
    said.map(({ path, headers }) => [path.endsWith("tasks/t%2F1:subscribe"), headers.get("Last-Event-ID")]),
  ).toEqual([[true, "0"]]);
});

it.each([
  [[asked, ended], "c1", true],
  [[asked, ended], "c9", false],
])("finds no answer in a turn that ended without one", async (events, callId, hasCall) => {
  serve(() => stream(...events));
  const past = await pastQuestion("t", callId);
  expect([past.call !== undefined, past.answer]).toEqual([hasCall, undefined]);
});

it("fails where the server does", async () => {
  serve(() => new Response('{"error":{"message":"no such task"}}', { status: 404 }));
  await expect(pastQuestion("t", "c1")).rejects.toMatchObject({ status: 404, message: "no such task" });
  serve(() => {
    throw new TypeError("not reached");
  });
  await expect(pastQuestion("t", "c1")).rejects.toMatchObject({ status: 0 });
});

it.each([
  ["once", "Firefox", undefined, /^Allowed in Firefox, /],
  ["reject_once", "own", undefined, /^Rejected here, /],
  ["once", "own", "y", /^Accepted with your change, /],
  ["once", "own", "x", /^Allowed here, /],
])("says how %j by %j with %j ended a question", (optionId, by, newContent, words) => {
  const answer = { kind: "answered" as const, callId: "c1", optionId, by, at: 1, ...(newContent && { newContent }) };
  expect(endWords({ call: CALL as unknown as ToolCall, answer }, "own")).toMatch(words);
});

it("says that nobody answered", () => {
  expect(endWords({}, "own")).toMatch(/ended before anyone answered/);
});
