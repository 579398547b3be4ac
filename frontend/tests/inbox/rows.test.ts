// @vitest-environment happy-dom

import { render } from "lit";
import { expect, it } from "vitest";
import { itemRow } from "../../src/inbox/rows.ts";
import type { Item } from "../../src/inbox/items.ts";
import type { ConfirmationRequest, TaskRow, ToolCall } from "../../src/server/protocol.ts";
import type { Waiting } from "../../src/server/reviews.ts";
import type { SessionList } from "../../src/server/sessions.ts";

const sessions = { titleOf: () => "Late boats" } as unknown as SessionList;
const rest = { isAnswered: false, open: new Set<string>(), answers: new Map<string, never>(), endedAt: 0 };

function drawn(item: Partial<Item>): HTMLElement {
  const place = document.createElement("ul");
  const row = { isChosen: false, agent: "Isthmus", sessions, outcome: undefined, now: 0, open: () => {}, swipe: "" };
  render(itemRow({ ...rest, key: "k", ...item }, row), place);
  return place;
}

function question(confirmation_request: ConfirmationRequest): Partial<Item> {
  const call: ToolCall = {
    tool_call_id: "c",
    status: "PENDING",
    tool_name: "run_shell_command",
    input_parameters: {},
    confirmation_request,
  };
  return { question: { task: { id: "t", workspace: "/w", changedAt: 0 } as TaskRow, call, calls: [call] } };
}

const REVIEW = { key: "k", kind: "review", agent: "Codex", about: "/w/a.py", folders: ["/w"], at: 0 } as Waiting;

it.each([
  ["a change of another agent", { review: REVIEW }],
  ["a question of another agent", { review: { ...REVIEW, kind: "question" as const, about: "Log in?" } }],
  ["a command", question({ options: [], execute_details: { command: "ls" } })],
  ["a call", question({ options: [] })],
])("cuts long lines of a row with an ellipsis: %s", (_, item) => {
  const row = drawn(item);
  for (const line of row.querySelectorAll(".what, .peek"))
    for (const node of line.childNodes)
      expect(node.nodeType === Node.TEXT_NODE ? node.textContent?.trim() : "", String(line.className)).toBe("");
  expect(row.querySelector(".what > .cut")?.textContent).not.toBe("");
});

it("names the folder of another agent behind its name", () => {
  expect(drawn({ review: REVIEW }).querySelector(".from")?.textContent).toContain("Codex w");
});
