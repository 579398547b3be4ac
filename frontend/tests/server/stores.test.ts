// @vitest-environment happy-dom
// The rules of what the page knows of questions and of reviews. They are the same for both.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ChangeListener, changeStream } from "../../src/server/changes.ts";
import { rowOf } from "../../src/server/protocol.ts";
import { ReviewStore, rejectReview } from "../../src/server/reviews.ts";
import { TaskStore } from "../../src/server/store.ts";
import { json } from "../support/server.ts";

/** A request that has no answer yet. */
interface Open {
  answer(response: Response): void;
  fail(): void;
}

const AT = "2025-01-01T00:00:00Z";
const PARTS = [{ data: { tool_call_id: "c", tool_name: "x", confirmation_request: { options: [] } } }];
const task = (state: string) => ({ id: "one", status: { state, timestamp: AT, message: { parts: PARTS } } });
const COMPANION = { id: "p", folders: [], agents: [], ended: [] as unknown[], reviews: [] as unknown[], questions: [] };
const REVIEW = { id: "one", file: "/a.py", agent: "A", owner: "o", opened: 1, shown: true, new: false };
const OUTCOME = { id: "one", about: "/a.py", agent: "A", decision: "accepted", by: "phone", at: 2, problem: "" };

/** What both stores have: how the server says that something waits or has ended, and what the page learns of it itself. */
const STORES = {
  questions: () => {
    const store = new TaskStore();
    return {
      store,
      line: "changed" as const,
      waits: () => json({ tasks: [task("TASK_STATE_INPUT_REQUIRED")] }),
      ended: () => json({ tasks: [task("TASK_STATE_WORKING")] }),
      names: () => store.questions.map((question) => question.task.id),
      learn: () => store.put(rowOf(task("TASK_STATE_WORKING"))),
    };
  },
  reviews: () => {
    const store = new ReviewStore();
    return {
      store,
      line: "reviewsChanged" as const,
      waits: () => json({ companions: [{ ...COMPANION, reviews: [REVIEW] }] }),
      ended: () => json({ companions: [{ ...COMPANION, ended: [OUTCOME] }] }),
      names: () => store.waiting.map((one) => one.key),
      learn: () => store.note({ ...OUTCOME, decision: "accepted" }),
    };
  },
};

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])("the store of %s", (kind) => {
  let open: Open[];
  let listener: ChangeListener;
  let given: ReturnType<(typeof STORES)[typeof kind]>;
  let told: string[];

  const turn = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const respond = async (response: Response) => {
    open.shift()?.answer(response);
    await turn();
  };
  const lose = async () => {
    open.shift()?.fail();
    await turn();
  };

  beforeEach(() => {
    vi.useFakeTimers();
    open = [];
    vi.stubGlobal("localStorage", { getItem: () => "secret" });
    vi.stubGlobal(
      "fetch",
      () => new Promise((answer, refuse) => open.push({ answer, fail: () => refuse(new TypeError("no network")) })),
    );
    vi.spyOn(changeStream, "listen").mockImplementation((one) => void (listener = one));
    for (const each of ["start", "stop", "renew"] as const) vi.spyOn(changeStream, each).mockReturnValue();
    changeStream.isOpen = changeStream.hasReviews = true;
    given = STORES[kind]();
    told = [];
    for (const each of ["change", "refused", "reached"]) given.store.addEventListener(each, () => told.push(each));
    given.store.start();
  });

  afterEach(() => {
    given.store.stop();
    changeStream.isOpen = changeStream.hasReviews = false;
    vi.useRealTimers();
  });

  it("asks once at first, and knows what waits", async () => {
    expect([open.length, given.store.isLoaded]).toEqual([1, false]);
    await respond(given.waits());
    expect([given.names(), given.store.isLoaded, told]).toEqual([["one"], true, ["change"]]);
    await turn(50_000);
    expect(open).toHaveLength(0);
    await turn(20_000);
    expect(open).toHaveLength(1);
  });

  it("an answer that was given elsewhere is known after the line that tells of it", async () => {
    await respond(given.waits());
    for (let line = 0; line < 5; line += 1) listener[given.line]?.();
    await turn(50);
    expect(open).toHaveLength(1);
    await respond(given.ended());
    expect(given.names()).toEqual([]);
  });

  it("lines without a pause do not keep it from asking", async () => {
    await respond(given.waits());
    for (let line = 0; line < 20; line += 1) {
      listener[given.line]?.();
      await turn(10);
    }
    expect(open).toHaveLength(1);
  });

  it("what the page learned itself stays over an answer that was asked for before", async () => {
    await respond(given.waits());
    given.store.refresh();
    given.learn();
    expect(given.names()).toEqual([]);
    await respond(given.waits());
    expect(given.names()).toEqual([]);
    await turn(50);
    await respond(given.ended());
    expect([given.names(), open.length]).toEqual([[], 0]);
  });

  it("a line that comes while an answer is under way costs one more, however many come", async () => {
    for (let line = 0; line < 5; line += 1) listener[given.line]?.();
    await turn(50);
    expect(open).toHaveLength(1);
    await respond(given.waits());
    await turn(50);
    expect(open).toHaveLength(1);
    await respond(given.ended());
    await turn(50);
    expect([given.names(), open.length]).toEqual([[], 0]);
  });

  it("says once that the server is not reached, keeps what waits, and asks again until it is", async () => {
    await respond(given.waits());
    given.store.refresh();
    await lose();
    expect([given.store.isReached, given.names()]).toEqual([false, ["one"]]);
    await turn(2_000);
    await lose();
    await turn(2_000);
    await respond(given.waits());
    expect([given.store.isReached, told]).toEqual([true, ["change", "change", "reached", "change"]]);
  });

  it("stops when the token is refused, by an answer or by the stream", async () => {
    await respond(json({}, 401));
    expect(told).toEqual(["refused"]);
    given.store.refresh();
    listener.refused?.();
    await turn(100_000);
    expect([open.length, told]).toEqual([0, ["refused"]]);
    given.store.start();
    listener.refused?.();
    expect(told).toEqual(["refused", "refused"]);
  });

  it("asks when the stream was lost, and when the network is back, which renews the stream, too", async () => {
    await respond(given.waits());
    listener.lost?.();
    await turn(50);
    await respond(given.waits());
    dispatchEvent(new Event("online"));
    await turn(50);
    expect([open.length, vi.mocked(changeStream.renew).mock.calls.length]).toEqual([1, 1]);
  });

  it("gives up the stream while the page is hidden, and asks seldom", async () => {
    await respond(given.waits());
    vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(changeStream.stop).toHaveBeenCalledTimes(1);
    await turn(50);
    await respond(given.waits());
    await turn(5_000);
    expect(open).toHaveLength(0);
    await turn(20_000);
    expect(open).toHaveLength(1);
  });
});

it("an answer that was stored and lost is found by its repetition, which says who answered", async () => {
  let number = 0;
  vi.stubGlobal("localStorage", { getItem: () => "secret" });
  vi.stubGlobal("fetch", () => {
    number += 1;
    return number === 1 ? Promise.reject(new TypeError("lost")) : Promise.resolve(json({ outcome: OUTCOME }, 409));
  });
  await expect(rejectReview("one")).rejects.toMatchObject({ status: 0 });
  expect(await rejectReview("one")).toEqual({ is: "ended", outcome: OUTCOME, isLate: true });
});
