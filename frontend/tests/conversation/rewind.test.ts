import { describe, expect, it, vi } from "vitest";
import { EXTENSION } from "../../src/server/protocol.ts";
import { branch, ended, rewind } from "../../src/conversation/rewind.ts";
import { type Asked, json, serve, stream } from "../support/server.ts";

const state = (name: string, error = ""): unknown => ({
  statusUpdate: {
    status: { state: `TASK_STATE_${name}` },
    metadata: { [EXTENSION]: { kind: "STATE_CHANGE", error } },
  },
});

const isCommand = ({ body }: Asked): boolean => (body as { method?: string } | undefined)?.method === "command/execute";
const commandOf = ({ body }: Asked): unknown => (body as { params: unknown }).params;

describe("to rewind and to branch", () => {
  it("restores a checkpoint by the command of the agent, in its session", async () => {
    const asked = serve(() => json({ result: { execution_id: "task" } }));
    expect(await rewind("session", "before")).toBe("task");
    expect(asked.map(commandOf)).toEqual([
      { command_path: ["restore"], args: "before", metadata: { contextId: "session" } },
    ]);
  });

  it("keeps the conversation as a saved chat, and goes on with it in a new session of the folder", async () => {
    const asked = serve((one, number) =>
      isCommand(one) ? json({ result: { execution_id: `task${number}` } }) : stream(state("COMPLETED")),
    );
    expect(await branch("session", "abcdef", "/work")).toBe("task3");
    const [fork, resume] = asked.filter(isCommand).map(commandOf) as { args: string }[];
    expect(fork).toMatchObject({ command_path: ["chat"], metadata: { contextId: "session" } });
    const name = /^fork abcdef (branch-\d{8}T\d{6}-abcd)$/.exec(fork?.args ?? "")?.[1];
    expect(resume).toMatchObject({ args: `resume ${name}`, metadata: { [EXTENSION]: { workspace_path: "/work" } } });
    expect((resume as { metadata?: object } | undefined)?.metadata).not.toHaveProperty("contextId");
  });

  it("does not go on if the conversation was not kept", async () => {
    const asked = serve((one) =>
      isCommand(one) ? json({ result: { execution_id: "task" } }) : stream(state("FAILED", "no such chat")),
    );
    await expect(branch("session", "abcdef", "/work")).rejects.toMatchObject({ message: "no such chat" });
    expect(asked.filter(isCommand)).toHaveLength(1);
  });
});

describe("the end of a task", () => {
  it("comes with all its events", async () => {
    serve(() => stream(state("WORKING"), state("COMPLETED")));
    expect((await ended("task")).map((event) => event.kind === "state" && event.state)).toEqual([
      "working",
      "completed",
    ]);
  });

  it("is a problem if the stream is refused", async () => {
    serve(() => json({ error: { message: "unknown task" } }, 404));
    await expect(ended("task")).rejects.toMatchObject({ message: "unknown task" });
  });

  it("is not awaited for longer than its deadline", async () => {
    vi.useFakeTimers();
    try {
      serve(() => new Response(new ReadableStream()));
      const end = expect(ended("task", 1000)).rejects.toMatchObject({ status: 400 });
      await vi.advanceTimersByTimeAsync(1000);
      await end;
    } finally {
      vi.useRealTimers();
    }
  });
});
