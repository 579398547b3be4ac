import { type Mock, beforeEach, describe, expect, it, vi } from "vitest";
import { EXTENSION } from "../src/protocol.ts";
import { type SessionReader, SessionStream } from "../src/session-stream.ts";
import type { TaskStore } from "../src/store.ts";
import { row } from "./support/events.ts";
import { type Asked, json, serve, stream } from "./support/server.ts";

const task = (id: string, createdAt: number, more: object = {}): object => ({
  id,
  contextId: "session",
  status: { state: "TASK_STATE_COMPLETED", timestamp: new Date(createdAt).toISOString() },
  metadata: { [EXTENSION]: { created_at: new Date(createdAt).toISOString(), ...more } },
});

const prompt = (id: string): object => ({
  task: { id, status: {}, history: [{ role: "ROLE_USER", messageId: `m${id}`, parts: [{ text: `prompt ${id}` }] }] },
});
const done = {
  statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, metadata: { [EXTENSION]: { kind: "STATE_CHANGE" } } },
};

function answer({ path }: Asked): Response {
  const id = /tasks\/(\w+):subscribe/.exec(path)?.[1];
  if (id) return stream(prompt(id), done);
  return json({ tasks: [task("c", 3), task("b", 2), task("sub", 1.5, { parent_task_id: "b" }), task("a", 1)] });
}

function reader(): SessionReader & { found: Mock<(contextId: string) => void> } {
  return { came: vi.fn(), turned: vi.fn(), found: vi.fn(), mustSeeEnd: false };
}

const store = (...rows: ReturnType<typeof row>[]): TaskStore =>
  ({ rows: new Map(rows.map((one) => [one.id, one])) }) as unknown as TaskStore;

const textsOf = (session: SessionStream): string[] =>
  session.items.flatMap((item) => (item.is === "prompt" ? [item.text] : []));

beforeEach(() => {
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("document", { hidden: false, removeEventListener: vi.fn() });
  vi.stubGlobal("removeEventListener", vi.fn());
});

describe("the tasks of a session", () => {
  it("are one conversation up to the shown task, without those of subagents", async () => {
    serve(answer);
    const read = reader();
    const session = new SessionStream(read);
    session.begin("b", store(row("b", { createdAt: 2 })));
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["prompt a", "prompt b"]));
    expect(read.found).toHaveBeenCalledWith("session");
    expect(session.folds.map((fold) => fold.name)).toEqual(["a", "b"]);
    for (const item of session.items) expect(session.foldOf(item).items).toContain(item);
    session.detach();
  });

  it("have keys of their own, so that equal ids of two tasks are two things", async () => {
    serve((asked) => {
      const response = answer(asked);
      return asked.path.includes(":subscribe") ? stream({ ...prompt("x") }, done) : response;
    });
    const session = new SessionStream(reader());
    session.begin("c", store(row("c", { createdAt: 3 })));
    await vi.waitFor(() => expect(session.items).toHaveLength(3));
    expect(new Set(session.items.map((item) => item.key)).size).toBe(3);
    session.detach();
  });

  it("are those of another session after it was left, whatever still comes", async () => {
    let late: ((response: Response) => void) | undefined;
    serve(answer);
    const fetched = fetch;
    vi.stubGlobal("fetch", (path: string, options: RequestInit) =>
      path.includes("contextId") && !late
        ? new Promise<Response>((resolve) => (late = resolve))
        : fetched(path, options),
    );
    const session = new SessionStream(reader());
    session.begin("c", store(row("c", { createdAt: 3 })));
    session.begin("a", store(row("a", { createdAt: 1 })));
    late?.(json({ tasks: [task("b", 2)] }));
    await vi.waitFor(() => expect(session.stream.is).toBe("ended"));
    expect(textsOf(session)).toEqual(["prompt a"]);
    session.detach();
  });
});
