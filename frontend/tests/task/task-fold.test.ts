import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TaskEvent } from "../../src/server/protocol.ts";
import { TaskFold } from "../../src/task/task-fold.ts";
import { answered, asked, called, row, turned, written } from "../support/events.ts";

function folded(events: TaskEvent[]): TaskFold {
  const fold = new TaskFold("task");
  fold.apply(events);
  return fold;
}

/** Return all that a page draws of a fold. */
function shown(fold: TaskFold): unknown {
  const { items, state, error, todos, usage, questions, changedFiles, isOffline, count } = fold;
  return structuredClone({ items, state, error, todos, usage, questions, changedFiles, isOffline, count });
}

it("works again once the last answered call runs, whatever the server says of the task", () => {
  const waiting = [asked("one"), asked("two"), turned("input-required")];
  expect(folded(waiting).state).toBe("input-required");
  expect(folded([...waiting, called("one", "EXECUTING")]).state).toBe("input-required");
  expect(folded([...waiting, called("one", "SUCCEEDED"), called("two", "EXECUTING")]).state).toBe("working");
  expect(folded([...waiting, turned("canceled"), called("two", "EXECUTING")]).state).toBe("canceled");
});

const edit = (path: string, before: string, after: string) => ({
  file_name: path,
  file_path: path,
  old_content: before,
  new_content: after,
});

const identifiers = fc.constantFrom("one", "two", "three");
const anyEvent: fc.Arbitrary<TaskEvent> = fc.oneof(
  fc.tuple(identifiers, fc.string()).map(([id, text]) => written(id, text)),
  fc.tuple(identifiers, identifiers).map(([id, other]) => written(id, "again", other)),
  identifiers.map((id) => asked(id)),
  fc
    .tuple(identifiers, fc.constantFrom("EXECUTING", "SUCCEEDED", "FAILED", "CANCELLED"))
    .map(([id, status]) => called(id, status as "EXECUTING")),
  identifiers.map((id) => answered(id, "phone")),
  fc
    .constantFrom<TaskEvent[]>([turned("working")], [turned("input-required")], [turned("failed", "no")])
    .map(([event]) => event as TaskEvent),
  identifiers.map((id): TaskEvent => ({ kind: "prompt", messageId: id, text: id, at: 0, row: row("task") })),
  identifiers.map((id): TaskEvent => ({ kind: "checkpoint", callId: id, checkpointId: `before ${id}` })),
  fc.constant<TaskEvent>({ kind: "thought", subject: "s", description: "d", at: 0 }),
  fc.constant<TaskEvent>({
    kind: "usage",
    usage: { input: 2, output: 1, cached: 0, thought: 0, cost: 0.5, unpriced: 0 },
  }),
);

describe("a fold of a task", () => {
  it("is the same however its events are divided", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.infiniteStream(fc.nat(5)), (events, sizes) => {
        const parts = new TaskFold("task");
        for (let at = 0; at < events.length;) {
          const size = sizes.next().value as number;
          parts.apply(structuredClone(events.slice(at, at + size)));
          at += size;
        }
        expect(shown(parts)).toEqual(shown(folded(structuredClone(events))));
      }),
    );
  });

  it("has each thing once, and no question of a task that has ended", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const fold = folded(events);
        const keys = fold.items.map((item) => item.key);
        expect(new Set(keys).size).toBe(keys.length);
        expect(folded([...events, turned("failed", "no")]).questions).toEqual([]);
      }),
    );
  });

  it("takes no progress after the end of a call", () => {
    const fold = folded([called("a", "EXECUTING"), called("a", "SUCCEEDED"), called("a", "EXECUTING")]);
    expect(fold.items).toMatchObject([{ is: "call", call: { status: "SUCCEEDED" } }]);
  });

  it("asks until the first answer, which counts", () => {
    expect(folded([asked("a"), asked("b")]).questions.map((one) => one.tool_call_id)).toEqual(["a", "b"]);
    const fold = folded([asked("a"), answered("a", "phone"), answered("a", "desk", "cancel"), asked("a")]);
    expect(fold.questions).toEqual([]);
    expect(fold.answers.get("a")).toEqual({ by: "phone", optionId: "proceed_once" });
    expect(fold.items).toMatchObject([{ answer: { by: "phone", optionId: "proceed_once", isEdited: false } }]);
  });

  it("says whether the user has changed what was proposed", () => {
    const proposed = asked("a", {
      confirmation_request: { options: [], file_edit_details: edit("/home/user/code/a", "1\n", "2\n") },
    });
    const edited = (newContent: string) => [proposed, { ...answered("a", "phone"), newContent } as TaskEvent];
    expect(folded(edited("3\n")).items).toMatchObject([{ answer: { isEdited: true } }]);
    expect(folded(edited("2\n")).items).toMatchObject([{ answer: { isEdited: false } }]);
  });

  it("joins the calls between two other items, also when a text between them is taken back", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const { items } = folded(events);
        for (const [at, item] of items.entries())
          if (item.is === "call")
            expect([item.isFirst, item.isLast]).toEqual([items[at - 1]?.is !== "call", items[at + 1]?.is !== "call"]);
      }),
    );
  });

  it("keeps the figures of a result whose output is not kept, and counts its lines before it is shortened", () => {
    const fold = new TaskFold("task", 500);
    const output = { text: "line\n".repeat(50_000), exit_code: 3 };
    fold.apply([called("a", "SUCCEEDED", { tool_name: "run_shell_command", output }, 1)]);
    fold.apply([called("b", "SUCCEEDED", { output: { text: "x".repeat(900) } }, 2)]);
    expect(fold.items[0]).toMatchObject({ fetched: 1, lines: 50_000, result: { is: "exit", code: 3 } });
  });

  it("knows how long a thought has taken, and what can be sent again after a failure", () => {
    const fold = folded([
      { kind: "prompt", messageId: "p", text: "go", at: 0, row: row("task") },
      { ...turned("working"), at: 1_000 } as TaskEvent,
      { kind: "thought", subject: "s", description: "d", at: 10_000 },
      { ...turned("failed", "no"), at: 12_000 } as TaskEvent,
    ]);
    expect(fold.items.slice(1)).toMatchObject([
      { is: "thought", time: 9_000 },
      { is: "end", at: 12_000, again: "go" },
    ]);
  });

  it("puts a text in the place of the one that it replaces", () => {
    const fold = folded([written("a", "half"), written("b", "whole", "a")]);
    expect(fold.items).toMatchObject([{ is: "text", text: "whole" }]);
  });

  it("adds a growing text to one item", () => {
    const fold = folded([written("a", "one "), written("a", "two")]);
    expect(fold.items).toMatchObject([{ is: "text", text: "one two" }]);
  });

  it("counts the lines of each edit that was made once, and of a question for its row alone", () => {
    const diff = edit("/home/user/code/a", "1\n2\n", "1\n3\n4\n");
    const done = called("a", "SUCCEEDED", { output: { diff } });
    const fold = folded([
      asked("a", { confirmation_request: { options: [], file_edit_details: diff } }),
      done,
      structuredClone(done),
      called("b", "SUCCEEDED", { output: { diff: edit("/home/user/code/a", "", "5\n") } }),
    ]);
    expect(fold.changedFiles).toEqual([{ path: "/home/user/code/a", added: 3, removed: 1 }]);
  });

  it("counts what a subagent has changed, once, beside the edits of the agent itself", () => {
    const changed_files = [
      { file_path: "/home/user/code/a", added: 2 },
      { file_path: "/home/user/code/b", removed: 1 },
    ];
    const done = called("a", "FAILED", { tool_name: "invoke_agent", changed_files });
    const own = called("b", "SUCCEEDED", { output: { diff: edit("/home/user/code/a", "", "5\n") } });
    expect(folded([done, structuredClone(done), own]).changedFiles).toEqual([
      { path: "/home/user/code/a", added: 3, removed: 0 },
      { path: "/home/user/code/b", added: 0, removed: 1 },
    ]);
  });

  it("gives pictures to the message or the call that they came with", () => {
    const pictures = (callId: string, messageId: string, event: number): TaskEvent => ({
      kind: "pictures",
      callId,
      messageId,
      event,
      numbers: [0],
    });
    const fold = folded([
      { kind: "prompt", messageId: "p", text: "go", at: 0, row: row("task") },
      called("a", "SUCCEEDED"),
      pictures("", "p", 1),
      pictures("a", "", 7),
      pictures("none", "", 8),
    ]);
    expect(fold.items).toMatchObject([
      { pictures: [{ task: "task", event: 1, number: 0 }] },
      { pictures: [{ task: "task", event: 7, number: 0 }] },
    ]);
  });

  it("gives the first edit after a prompt's checkpoint to the prompt, and each to its call", () => {
    const fold = folded([
      { kind: "prompt", messageId: "p", text: "go", at: 0, row: row("task") },
      called("a", "EXECUTING"),
      { kind: "checkpoint", callId: "a", checkpointId: "1" },
      called("b", "EXECUTING"),
      { kind: "checkpoint", callId: "b", checkpointId: "2" },
    ]);
    expect(fold.items).toMatchObject([{ checkpoint: "1" }, { checkpoint: "1" }, { checkpoint: "2" }]);
  });

  it("shows the plan as texts, whatever an agent has written into it", () => {
    const todos = [{ description: "one", status: "done" }, { content: "two" }, { description: { a: 1 } }, null];
    const fold = folded([called("a", "EXECUTING", { tool_name: "write_todos", input_parameters: { todos } })]);
    expect(fold.todos).toEqual([
      { description: "one", status: "done" },
      { description: "two", status: "pending" },
      { description: "", status: "pending" },
      { description: "", status: "pending" },
    ]);
  });

  it("forgets the oldest results beyond its limit, and takes them back", () => {
    const fold = new TaskFold("task", 1000);
    const events = ["a", "b"].map((id, at) => called(id, "SUCCEEDED", { output: { text: id.repeat(900) } }, at + 1));
    fold.apply(events);
    const [first, second] = fold.items;
    expect(first).toMatchObject({ fetched: 1, call: { output: {} } });
    expect(second).toMatchObject({ fetched: 0, call: { output: { text: "b".repeat(900) } } });
    if (first?.is === "call") fold.restore(first, [events[0] as TaskEvent]);
    expect(first).toMatchObject({ fetched: 0, call: { output: { text: "a".repeat(900) } } });
  });
});
