import { describe, expect, it } from "vitest";
import type { ToolCall } from "../../src/server/protocol.ts";
import { factsOf, isForm, jsonProblem, shownPath } from "../../src/questions/question.ts";
import { call } from "../support/events.ts";

const asks = (more: Partial<ToolCall>): ToolCall => call("a", "PENDING", more);

describe("the facts of a question", () => {
  it("of an edit are its file, how it changes, and what the answer covers", () => {
    const file_edit_details = {
      file_name: "a",
      file_path: "/home/user/code/src/a.py",
      old_content: "",
      new_content: "1\n",
    };
    const confirmation_request = { options: [], file_edit_details };
    const input_parameters = { instruction: " speed\n\tup " };
    expect(factsOf(asks({ tool_name: "replace", confirmation_request, input_parameters }), "/home/user/code/")).toEqual(
      {
        verb: "Change",
        object: "src/a.py",
        wants: "\u201cspeed up\u201d",
        touches: "src/a.py, nothing else",
        covers: "this change only; the next one is asked again",
      },
    );
    const { old_content: _, ...created } = file_edit_details;
    const { verb, touches } = factsOf(
      asks({ confirmation_request: { options: [], file_edit_details: created } }),
      "/home/user/code",
    );
    expect([verb, touches]).toEqual(["Create", "src/a.py, a new file of one line"]);
  });

  it("of a model that repeats itself are a question in words of the page", () => {
    const description = "The model repeats itself: it made 5 calls of ls, although it was told.";
    const { object } = factsOf(asks({ tool_name: "continue_repeating", description }), "/home/user/code");
    expect(object).toBe("The model repeats itself: let it go on?");
  });

  it("of a removal name it so, with the lines that go; a file that is only emptied is changed", () => {
    const file_edit_details = {
      file_name: "b",
      file_path: "/home/user/code/old.py",
      old_content: "1\n2\n",
      new_content: "",
    };
    const facts = (tool_name: string, input_parameters = {}) =>
      factsOf(
        asks({ tool_name, input_parameters, confirmation_request: { options: [], file_edit_details } }),
        "/home/user/code",
      );
    expect(facts("delete_file")).toMatchObject({
      verb: "Delete",
      object: "old.py",
      touches: "old.py with its 2 lines",
      covers: "this file only",
    });
    expect(facts("apply_patch", { input: "*** Begin Patch\n*** Delete File: old.py\n*** End Patch" }).verb).toBe(
      "Delete",
    );
    expect(facts("apply_patch", { input: "*** Delete File: other.py" }).verb).toBe("Change");
    const move = "*** Begin Patch\n*** Update File: old.py\n*** Move to: new.py\n*** End Patch";
    expect(facts("apply_patch", { input: move, removes_moved: true }).verb).toBe("Delete");
    expect(facts("write_file").verb).toBe("Change");
  });

  it("of a command show what hides in it", () => {
    const execute_details = { command: "ls\u202e /tmp\nrm x", working_directory: "/home/user/code" };
    const facts = factsOf(asks({ confirmation_request: { options: [], execute_details } }), "/home/user/code");
    expect(facts).toMatchObject({ verb: "Run", object: "ls\\u{202e} /tmp rm x", covers: "this command, once" });
  });

  it("of a tool of a server name both", () => {
    const mcp_details = { server_name: "ga\u200bmes", tool_name: "play" };
    const facts = factsOf(asks({ confirmation_request: { options: [], mcp_details } }), "/home/user/code");
    expect(facts.object).toBe("play");
    expect(facts.touches).toContain("ga\\u{200b}mes");
  });

  it("are found once for each call and folder", () => {
    const one = asks({ description: "look" });
    expect(factsOf(one, "/home/user/code")).toBe(factsOf(one, "/home/user/code"));
    expect(factsOf(one, "/home/user/code")).not.toBe(factsOf(one, "/other"));
  });
});

it.each([
  ["/home/user/code/a", "/home/user/code", "a"],
  ["/home/user/code/a", "/home/user/code/", "a"],
  ["/workshop/a", "/home/user/code", "/workshop/a"],
  ["/home/user/code/p\u0430y", "/home/user/code", "p\\u{430}y"],
])("the path %j is shown below %j as %j", (path, workspace, shown) => {
  expect(shownPath(path, workspace)).toBe(shown);
});

it("a form is a document that the user fills in, and no edit", () => {
  const file_edit_details = { file_name: "a", file_path: "a", new_content: "{}" };
  const confirmation_request = { options: [], file_edit_details };
  expect(isForm(asks({ tool_name: "ask_user", confirmation_request }))).toBe(true);
  expect(isForm(asks({ tool_name: "elicitation", confirmation_request }))).toBe(true);
  expect(isForm(asks({ tool_name: "write_file", confirmation_request }))).toBe(false);
  expect(isForm(asks({ tool_name: "ask_user", confirmation_request: { options: [] } }))).toBe(false);
});

describe("a document with comments", () => {
  it.each([
    '{"a": "// no comment", "b": "/* nor this */, ]"} // end',
    '{"a": [1, 2, /* x */ ], }',
    '/* a\n b */ {"a": "\\" // \\\\"}',
  ])("%j is JSON", (text) => {
    expect(jsonProblem(text)).toBe("");
  });

  it.each(["", "{", '{"a": 1 "b": 2}', "{a: 1}", '{"a": ,}', "// only"])("%j is none", (text) => {
    expect(jsonProblem(text)).not.toBe("");
  });
});
