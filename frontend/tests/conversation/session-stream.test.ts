import { beforeEach, describe, expect, it, vi } from "vitest";
import { EXTENSION, type TaskState } from "../../src/server/protocol.ts";
import { type SessionReader, SessionStream } from "../../src/conversation/session-stream.ts";
import { call } from "../support/events.ts";
import { type Asked, json, serve, stream } from "../support/server.ts";

const turn = (id: string, more: object = {}): object => ({
  id,
  title: id,
  state: "completed",
  began: 0,
  changed: 0,
  questions: 0,
  ...more,
});

const prompt = (id: string): object => ({
  task: { id, status: {}, history: [{ role: "ROLE_USER", messageId: `m${id}`, parts: [{ text: `prompt ${id}` }] }] },
});
const done = {
  statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, metadata: { [EXTENSION]: { kind: "STATE_CHANGE" } } },
};

/** Answer as a server that has one session with these turns. */
function answering(...turns: object[]): (asked: Asked) => Response {
  return ({ path }) => {
    const id = /tasks\/(\w+):subscribe/.exec(path)?.[1];
    return id
      ? stream(prompt(id), done)
      : json({ contextId: "session", title: "", tasks: turns, queued: [], draft: "" });
  };
}

const says = (kind: string, ...calls: object[]): object => ({
  statusUpdate: {
    status: { state: "TASK_STATE_INPUT_REQUIRED", message: { parts: calls.map((data) => ({ data })) } },
    metadata: { [EXTENSION]: { kind, answered_by: "phone" } },
  },
});
const asks = (...ids: string[]): object =>
  says(
    "TOOL_CALL_UPDATE",
    ...ids.map((id) => call(id, "PENDING", { tool_name: "ask_user", confirmation_request: { options: [] } })),
  );

function reader(): SessionReader {
  return { came: vi.fn(), turned: vi.fn() };
}

const letters = [..."abcdefghijkl"];

const textsOf = (session: SessionStream): string[] =>
  session.items.flatMap((item) => (item.is === "prompt" ? [item.text.replace("prompt ", "")] : []));

beforeEach(() => {
  vi.stubGlobal("window", globalThis);
  vi.stubGlobal("document", { hidden: false, removeEventListener: vi.fn() });
  vi.stubGlobal("removeEventListener", vi.fn());
});

describe("the state of a session", () => {
  const works = {
    statusUpdate: { status: { state: "TASK_STATE_WORKING" }, metadata: { [EXTENSION]: { kind: "STATE_CHANGE" } } },
  };

  /** Return the states that are shown one after another, while a turn is read that the session lists in this state. */
  async function shown(state: string, listed: TaskState | undefined, ...events: object[]): Promise<unknown[]> {
    serve(({ path }) =>
      path.includes(":subscribe")
        ? stream(prompt("a"), ...events)
        : json({ contextId: "session", title: "", tasks: [turn("a", { state })], queued: [], draft: "" }),
    );
    const states: unknown[] = [];
    const note = (): void => {
      const found = session.stateOf(listed);
      if (!states.length || found !== states.at(-1)) states.push(found);
    };
    const session = new SessionStream({ came: note, turned: note });
    session.begin({ contextId: "session", turn: "" });
    note();
    await vi.waitFor(() => expect(session.items.length).toBeGreaterThan(0));
    if (events.includes(done)) await vi.waitFor(() => expect(session.stream.is).toBe("ended"));
    session.detach();
    return states;
  }

  it("is unknown first, and never at work while a turn that has ended is read again", async () => {
    expect(await shown("completed", undefined, works, done)).toEqual([undefined, "completed"]);
    expect(await shown("completed", "completed", works, done)).toEqual(["completed"]);
    expect(await shown("completed", undefined, works)).toEqual([undefined, "completed"]);
  });

  it("is that of the events where the turn goes on", async () => {
    expect(await shown("working", undefined, works)).toEqual([undefined, "working"]);
    expect(await shown("working", "working", works, done)).toEqual(["working", "completed"]);
  });
});

describe("the turns of a session", () => {
  it("are one conversation: the newest ones first, older ones when they are asked for", async () => {
    serve(answering(...letters.map((id) => turn(id))));
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: "" });
    await vi.waitFor(() => expect(textsOf(session)).toEqual([..."hijkl"]));
    expect([session.hasEarlier, session.isReading]).toEqual([true, false]);
    session.earlier();
    await vi.waitFor(() => expect(textsOf(session)).toEqual([..."defghijkl"]));
    expect(session.folds.map((fold) => fold.name).join("")).toBe("defghijkl");
    for (const item of session.items) expect(session.foldOf(item).items).toContain(item);
    session.all();
    await vi.waitFor(() => expect(textsOf(session)).toEqual(letters));
    session.detach();
  });

  it.each(["b", 2])("go back to the one that the address names: %s", async (named) => {
    serve(answering(...letters.map((id) => turn(id))));
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: named });
    await vi.waitFor(() => expect(session.itemAt("b")).toBeGreaterThanOrEqual(0));
    expect(textsOf(session).at(-1)).toBe("l");
    expect(session.stream.is).toBe("ended");
    session.detach();
  });

  it("do not have the comparisons of the page of changes, but one that was sent here", async () => {
    serve(answering(turn("a"), turn("b", { title: "/diff" }), turn("c")));
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: "" });
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["a", "c"]));
    session.begin({ contextId: "session", turn: "b" });
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["a", "b", "c"]));
    session.detach();
  });

  it("grow at the end when one begins", async () => {
    const turns = [turn("a")];
    serve((asked) => answering(...turns)(asked));
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: "" });
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["a"]));
    turns.push(turn("b"));
    session.begun("b");
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["a", "b"]));
    expect(session.fold.name).toBe("b");
    session.detach();
  });

  it("have keys of their own, so that equal ids of two tasks are two things", async () => {
    serve((asked) =>
      asked.path.includes(":subscribe") ? stream(prompt("x"), done) : answering(turn("a"), turn("b"), turn("c"))(asked),
    );
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: "" });
    await vi.waitFor(() => expect(session.items).toHaveLength(3));
    expect(new Set(session.items.map((item) => item.key)).size).toBe(3);
    session.detach();
  });

  it("are those of another session after it was left, whatever still comes", async () => {
    let late: ((response: Response) => void) | undefined;
    serve(answering(turn("a")));
    const fetched = fetch;
    vi.stubGlobal("fetch", (path: string, options: RequestInit) =>
      path.includes("sessions/") && !late
        ? new Promise<Response>((resolve) => (late = resolve))
        : fetched(path, options),
    );
    const session = new SessionStream(reader());
    session.begin({ contextId: "left", turn: "" });
    session.begin({ contextId: "session", turn: "" });
    late?.(json({ contextId: "left", tasks: [turn("b")] }));
    await vi.waitFor(() => expect(session.stream.is).toBe("ended"));
    expect(textsOf(session)).toEqual(["a"]);
    session.detach();
  });

  it("ask all their questions, each in its turn, also where an earlier one had a call of the same id", async () => {
    const answer = says("TOOL_CALL_CONFIRMATION", { tool_call_id: "1", selected_option_id: "o" });
    serve(({ path }) => {
      const [, id = ""] = /tasks\/(\w+):subscribe/.exec(path) ?? [];
      if (id === "a") return stream(prompt(id), asks("1"), answer, done);
      if (id) return stream(prompt(id), id === "b" ? asks("q?0", "q?1") : asks("1"));
      return answering(
        turn("a"),
        turn("b", { state: "input-required" }),
        turn("c", { state: "input-required" }),
      )({ path } as Asked);
    });
    const session = new SessionStream(reader());
    session.begin({ contextId: "session", turn: "" });
    const ids = () => session.questions.map(({ calls }) => calls.map((one) => one.tool_call_id));
    await vi.waitFor(() => expect(ids()).toEqual([["q?0", "q?1"], ["1"]]));
    await vi.waitFor(() => expect(session.folds[0]?.answers.has("1")).toBe(true));
    expect(session.questions.map(({ taskId }) => session.foldNamed(taskId)?.name)).toEqual(["b", "c"]);
    session.detach();
  });

  it("are one task alone for a subagent", async () => {
    const asked = serve(answering());
    const session = new SessionStream(reader());
    session.begin({ taskId: "sub" });
    await vi.waitFor(() => expect(textsOf(session)).toEqual(["sub"]));
    expect(asked.some(({ path }) => path.includes("sessions"))).toBe(false);
    session.detach();
  });

  it("are said to be missing where the session is not there", async () => {
    serve(() => json({ error: "you have no such session" }, 404));
    const session = new SessionStream(reader());
    session.begin({ contextId: "none", turn: "" });
    await vi.waitFor(() => expect(session.stream).toEqual({ is: "failed", reason: "you have no such session" }));
    session.detach();
  });
});
