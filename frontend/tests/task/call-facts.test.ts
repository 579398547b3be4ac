import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  clockWords,
  durationWords,
  lastLines,
  linesIn,
  markOf,
  resultOf,
  resultWords,
  rowFactsOf,
  withoutExitCode,
} from "../../src/task/call-facts.ts";
import type { ToolCall } from "../../src/server/protocol.ts";
import { call } from "../support/events.ts";

const done = (tool_name: string, text: string, more: Partial<ToolCall["output"] & object> = {}): ToolCall =>
  call("a", "SUCCEEDED", { tool_name, output: { text, ...more } });
const words = (tool_name: string, text: string): string => {
  const result = resultOf(done(tool_name, text));
  return result ? resultWords(result) : "";
};

describe("the result of a call", () => {
  // The outputs are those of the tools in src/isthmus/tools; tests/peers/test_workbench_timeline.py has them from these.
  it("of a search are its places and files", () => {
    const found =
      'Found 3 matches for pattern "fromisoformat" in the workspace:\n---\nFile: a.py\nL2: x\nL9: Found 99 matches for pattern\n---\nFile: b.py\nL1: y\n---';
    expect(words("grep_search", found)).toBe("3 places in 2 files");
    expect(words("grep_search", 'Found 1 match for pattern "x" in the workspace:\n---\nFile: a\nL1: x\n---')).toBe(
      "1 place in 1 file",
    );
    const many =
      '[Only 9 files were listed in time, or as many as are kept: there may be more. Name a folder with dir_path.]\nFound 2 matches for pattern "x" in the workspace (only the first 2 are shown; there are more):\n---\nFile: a\nL1: x\nL2: x\n---';
    expect(words("grep_search", many)).toBe("2+ places in 1 file");
    expect(words("grep_search", 'Found 2 files with matches for pattern "x" in the workspace:\na\nb')).toBe("2 files");
    expect(words("grep_search", 'No matches found for pattern "x" in the workspace.')).toBe("nothing found");
  });

  it("of files that were found, listed and read is how many they are", () => {
    expect(words("glob", 'Found 2 file(s) matching "*" within /w, newest first:\n/w/a\n/w/b')).toBe("2 files");
    expect(words("glob", 'No files found matching pattern "*" within /w.')).toBe("nothing found");
    expect(words("list_directory", "src/\na.py (3 B)\n(2 ignored)")).toBe("2 entries");
    expect(words("list_directory", "The folder is empty.")).toBe("0 entries");
    expect(words("list_directory", "a\nb\n[5 more entries are not shown; glob finds them]")).toBe("7 entries");
    expect(words("read_file", "1\n2\n3\n")).toBe("3 lines");
    expect(words("read_file", "1")).toBe("1 line");
    expect(words("read_file", "[Lines 10-12 of 90 of a.py. To read on, use start_line: 13.]\na\nb\nc\n")).toBe(
      "lines 10 to 12",
    );
    expect(words("read_file", "board.png: image/png, 12 KiB")).toBe("");
    expect(words("read_many_files", "Read 3 of 5 files.\na is cut: 1 of 2 lines.")).toBe("3 files");
  });

  it("of a command is its exit code, by the fact, not by the words of its output", () => {
    expect(resultOf(done("run_shell_command", "no\nExit Code: 3", { exit_code: 3 }))).toEqual({ is: "exit", code: 3 });
    expect(resultOf(done("run_shell_command", "a program may print so\nExit Code: 3"))).toBeUndefined();
    expect(resultWords({ is: "exit", code: 3 })).toBe("exit 3");
    expect(resultWords({ is: "exit", code: -9 })).toBe("ended by signal 9");
    expect(markOf("SUCCEEDED", { is: "exit", code: 3 }, false)).toBe("failed");
    expect(markOf("SUCCEEDED", undefined, false)).toBe("completed");
    expect(markOf("PENDING", undefined, true)).toBe("input-required");
    expect(markOf("PENDING", undefined, false)).toBe("working");
    expect(withoutExitCode("no\nExit Code: 3")).toBe("no");
    expect(withoutExitCode("Exit Code: 4\nno\nSignal: 9 (SIGKILL)\nnote")).toBe("Exit Code: 4\nno\nnote");
  });

  it("of a plan is how much of it is done", () => {
    const todos = [{ status: "completed" }, { status: "pending" }, null];
    const plan = call("a", "SUCCEEDED", { tool_name: "write_todos", input_parameters: { todos } });
    expect(resultWords(resultOf(plan) ?? { is: "lines", from: 1, count: 0 })).toBe("1 of 3 done");
  });

  it("is nothing for any text that no tool of ours writes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("grep_search", "glob", "read_many_files", "run_shell_command"),
        fc.string(),
        (tool, text) => {
          expect(words(tool, text)).toBe("");
        },
      ),
    );
  });
});

describe("the last lines of an output", () => {
  it("are the lines of its end, and all of it with those above", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom("a", " ", "b") }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 9 }),
        (lines, count) => {
          const text = lines.join("\n");
          const whole = text.replace(/\n+$/, "");
          const { text: shown, above } = lastLines(text, count);
          expect(whole.endsWith(shown)).toBe(true);
          expect(shown.split("\n").length).toBeLessThanOrEqual(count);
          expect(above + linesIn(shown)).toBe(shown === "" ? above : linesIn(whole));
        },
      ),
    );
    expect(lastLines("1\n2\n3\n", 2)).toEqual({ text: "2\n3", above: 1 });
  });
});

describe("the words of a row", () => {
  const said = (tool_name: string, input_parameters: Record<string, unknown>, more: Partial<ToolCall> = {}) => {
    const { verb, object, rest } = rowFactsOf(call("a", "SUCCEEDED", { tool_name, input_parameters, ...more }), "/w");
    return [verb, object, rest];
  };

  it("are a verb and what it is done to", () => {
    expect(said("grep_search", { pattern: "a b" })).toEqual(["Search", "a b", ""]);
    expect(said("grep_search", { pattern: "a", dir_path: "/w/src" })).toEqual(["Search", "a", "in src"]);
    expect(said("read_file", { file_path: "/w/src/a.py" })).toEqual(["Read", "src/a.py", ""]);
    expect(said("read_many_files", { include: ["a", "b", 3] })).toEqual(["Read", "a, b", ""]);
    expect(said("run_shell_command", { command: "make" })).toEqual(["Run", "make", ""]);
    expect(said("write_todos", {})).toEqual(["", "", "Plan"]);
    expect(said("invoke_agent", { agent_name: "reviewer", prompt: "Read\nall" })).toEqual([
      "Subagent",
      "reviewer",
      "Read all",
    ]);
  });

  it("are those of the agent for other tools, and without the name that stands in the badge", () => {
    expect(said("deploy", {}, { description: "Deploy the site" })).toEqual(["", "", "Deploy the site"]);
    expect(said("deploy", {}, { tool_call_id: "a?b", description: "reviewer: Deploy" })).toEqual(["", "", "Deploy"]);
    expect(said("read_file", { file_path: 3 })).toEqual(["", "", "read_file"]);
  });

  it("show what hides in them", () => {
    expect(said("grep_search", { pattern: "a\u202eb" })[1]).toBe("a\\u{202e}b");
  });

  it("say a time in seconds, then in minutes", () => {
    expect([durationWords(900), durationWords(4_200), durationWords(61_000)]).toEqual(["", "4 s", "1:01"]);
    expect([clockWords(12_900), clockWords(3_600_000), clockWords(-5)]).toEqual(["0:12", "1:00:00", "0:00"]);
  });
});
