import { expect, it } from "vitest";
import { choicesOf, isListed, kindOf } from "../../src/inbox/filter.ts";
import type { Item } from "../../src/inbox/items.ts";
import type { ConfirmationRequest, TaskRow, ToolCall } from "../../src/server/protocol.ts";
import type { Waiting } from "../../src/server/reviews.ts";

const rest = { isAnswered: false, open: new Set<string>(), answers: new Map(), endedAt: 0 };

function asked(request: Partial<ConfirmationRequest>, more: Partial<ToolCall> = {}): Item {
  const call: ToolCall = {
    tool_call_id: "c",
    status: "PENDING",
    tool_name: "tool",
    confirmation_request: { options: [], ...request },
    ...more,
  };
  return {
    ...rest,
    key: "k",
    question: { task: { id: "t", workspace: "/w/harbour" } as TaskRow, call, calls: [call] },
  };
}

const EDIT = asked({ file_edit_details: { file_name: "a.py", file_path: "/w/harbour/a.py", new_content: "x" } });
const COMMAND = asked({ execute_details: { command: "npm test" } });
const SERVER = asked({}, { tool_name: "sampling", input_parameters: { server: "docs" } });
const REVIEW: Item = {
  ...rest,
  key: "r",
  review: { kind: "review", agent: "Gemini CLI", about: "/w/web/b.ts", folders: ["/w/web"] } as unknown as Waiting,
};

it("tells kinds and agents apart", () => {
  expect([EDIT, COMMAND, SERVER, REVIEW].map(kindOf)).toEqual(["edits", "commands", "others", "edits"]);
  expect(choicesOf([EDIT, COMMAND, REVIEW], "Isthmus")).toEqual({
    agents: ["Gemini CLI", "Isthmus"],
    kinds: ["edits", "commands"],
  });
  expect(choicesOf([EDIT], "Isthmus")).toEqual({ agents: [], kinds: [] });
});

it.each([
  ["", "", 4],
  ["kind:edits", "", 2],
  ["agent:Isthmus", "", 2],
  ["agent:docs", "", 1],
  ["", "NPM", 1],
  ["", "harbour a.py", 1],
  ["", "ferries", 3],
  ["kind:edits", "ferries", 1],
  ["kind:edits", "npm", 0],
])("lists what fits the filter %j and the words %j", (filter, search, count) => {
  const items = [EDIT, COMMAND, SERVER, REVIEW];
  const listed = items.filter((item) =>
    isListed(item, filter, search, "Isthmus", item.review ? "" : "Late midnight ferries"),
  );
  expect(listed.length).toBe(count);
});
