import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Toast, Toasts, endsIn } from "../../src/frame/toasts.ts";
import type { SessionFacts, SessionState } from "../../src/server/sessions.ts";

const session = (contextId: string, state: SessionState) =>
  ({ contextId, state, title: `Title of ${contextId}` }) as SessionFacts;
const toast = (key: string): Toast => ({ key, text: key, state: "completed", path: "" });

describe("the ends of sessions", () => {
  it("are told once, of those that are not in view", () => {
    const before = [session("a", "working"), session("b", "waiting"), session("c", "working"), session("d", "done")];
    const after = [session("a", "done"), session("b", "failed"), session("c", "done"), session("d", "done")];
    const told = endsIn(before, after, "c");
    expect(told.map(({ text }) => text)).toEqual(["Done: Title of a", "Failed: Title of b"]);
    expect(endsIn(after, after, "")).toEqual([]);
  });

  it("are not told of sessions that are new in the list, e.g. of its next page", () => {
    expect(endsIn([], [session("a", "done")], "")).toEqual([]);
  });

  it("say whether it failed or was cancelled", () => {
    const cancelled = { ...session("a", "failed"), turnState: "canceled" as const };
    const [told] = endsIn([session("a", "working")], [cancelled], "");
    expect([told?.text, told?.state]).toEqual(["Cancelled: Title of a", "canceled"]);
  });

  it("show nothing that the title hides", () => {
    const [told] = endsIn([session("a", "working")], [{ ...session("a", "done"), title: "x\u202ey" }], "");
    expect(told?.text).toBe("Done: x\\u{202e}y");
  });
});

describe("messages", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("window", globalThis);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("go after 6 seconds, and later while the pointer is above them", () => {
    const toasts = new Toasts(() => undefined);
    toasts.add(toast("a"));
    vi.advanceTimersByTime(5_999);
    expect(toasts.toasts).toHaveLength(1);
    toasts.hold();
    toasts.add(toast("b"));
    vi.advanceTimersByTime(60_000);
    expect(toasts.toasts).toHaveLength(2);
    toasts.release();
    vi.advanceTimersByTime(6_000);
    expect(toasts.toasts).toHaveLength(0);
  });

  it("are three at most, and one for each thing", () => {
    const toasts = new Toasts(() => undefined);
    for (const key of ["a", "b", "c", "b", "d"]) toasts.add(toast(key));
    expect(toasts.toasts.map(({ key }) => key)).toEqual(["c", "b", "d"]);
    toasts.remove("b");
    expect(toasts.toasts.map(({ key }) => key)).toEqual(["c", "d"]);
  });

  it("stay until they were read if something has failed", () => {
    const toasts = new Toasts(() => undefined);
    toasts.add({ ...toast("x"), state: "failed" });
    for (const key of ["a", "b", "c"]) toasts.add(toast(key));
    expect(toasts.toasts.map(({ key }) => key)).toEqual(["x", "b", "c"]);
    vi.advanceTimersByTime(60_000);
    toasts.hold();
    toasts.release();
    vi.advanceTimersByTime(60_000);
    expect(toasts.toasts.map(({ key }) => key)).toEqual(["x"]);
    toasts.read("other");
    expect(toasts.toasts).toHaveLength(1);
    toasts.read("x");
    expect(toasts.toasts).toHaveLength(0);
  });
});
