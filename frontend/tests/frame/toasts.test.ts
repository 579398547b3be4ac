import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Toast, Toasts, endsIn } from "../../src/frame/toasts.ts";
import type { SessionFacts, SessionState } from "../../src/server/sessions.ts";

const session = (contextId: string, state: SessionState) =>
  ({ contextId, state, title: `Title of ${contextId}` }) as SessionFacts;
const toast = (key: string): Toast => ({ key, text: key, state: "done", path: "" });

describe("the ends of sessions", () => {
  it("are told once, of those that are not in view", () => {
    const before = [session("a", "working"), session("b", "waiting"), session("c", "working"), session("d", "done")];
    const after = [session("a", "done"), session("b", "failed"), session("c", "done"), session("d", "done")];
    const told = endsIn(before, after, "c");
    expect(told.map(({ text }) => text)).toEqual(["Done: Title of a", "Failed or cancelled: Title of b"]);
    expect(endsIn(after, after, "")).toEqual([]);
  });

  it("are not told of sessions that are new in the list, e.g. of its next page", () => {
    expect(endsIn([], [session("a", "done")], "")).toEqual([]);
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
    vi.advanceTimersByTime(60_000);
    expect(toasts.toasts).toHaveLength(1);
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
});
