import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InboxItems, OPENING_MS } from "../../src/inbox/items.ts";
import type { TaskRow, ToolCall } from "../../src/server/protocol.ts";
import type { Waiting } from "../../src/server/reviews.ts";
import type { Question } from "../../src/server/store.ts";

const question = (id: string, ...ids: string[]): Question => {
  const calls = (ids.length ? ids : ["c"]).map((tool_call_id): ToolCall => ({
    tool_call_id,
    status: "PENDING",
    tool_name: "x",
    confirmation_request: { options: [] },
  }));
  return { task: { id, contextId: id } as TaskRow, call: calls[0]!, calls };
};
const at = (found: Question, changedAt: number): Question => ({ ...found, task: { ...found.task, changedAt } });
const review = (key: string): Waiting => ({ key, kind: "review", folders: [] }) as unknown as Waiting;
const BOTH = { questions: true, reviews: true };
const keys = (items: { key: string }[]): string[] => items.map((item) => item.key);

describe("the list of the inbox", () => {
  it("shows what waits at first, also if one list comes after the other", () => {
    const items = new InboxItems();
    items.take([question("a")], [], { questions: true, reviews: false }, 1);
    items.take([question("a")], [review("r")], BOTH, 2);
    expect(keys(items.shown)).toEqual(["a/c", "r"]);
    expect(items.fresh).toEqual([]);
  });

  it("has one order of time, whichever list comes first", () => {
    const questions = [at(question("a"), 30), at(question("b"), 10)];
    const reviews = [{ ...review("r"), at: 20 }];
    const orders = [
      { questions: true, reviews: false },
      { questions: false, reviews: true },
      { questions: true, reviews: true },
    ].map((first) => {
      const items = new InboxItems();
      items.take(first.questions ? questions : [], first.reviews ? reviews : [], first, 100);
      items.take(questions, reviews, BOTH, 100 + OPENING_MS);
      return keys(items.shown);
    });
    expect(orders).toEqual(Array(3).fill(["a/c", "r", "b/c"]));
  });

  it("moves nothing for a list that comes once there was time to read", () => {
    const items = new InboxItems();
    items.take([at(question("a"), 10)], [], { questions: true, reviews: false }, 100);
    items.take([at(question("a"), 10)], [{ ...review("r"), at: 20 }], BOTH, 101 + OPENING_MS);
    expect(keys(items.shown)).toEqual(["a/c", "r"]);
  });

  it("gathers what comes later, and shows it above when it is to be shown", () => {
    const items = new InboxItems();
    items.take([question("a")], [], BOTH, 1);
    items.take([question("b"), question("a")], [], BOTH, 2);
    items.take([question("d"), question("b"), question("a")], [review("r")], BOTH, 3);
    expect(keys(items.shown)).toEqual(["a/c"]);
    expect(keys(items.fresh)).toEqual(["d/c", "r", "b/c"]);
    items.take([question("d"), question("a")], [], BOTH, 4); // answered before they were shown
    expect(keys(items.fresh)).toEqual(["d/c"]);
    items.showFresh();
    expect(keys(items.shown)).toEqual(["d/c", "a/c"]);
  });

  it("shows what is new at once if nothing else waits, and keeps what is answered", () => {
    const items = new InboxItems();
    items.take([question("a")], [], BOTH, 1);
    const { gone, ended } = items.take([question("b")], [], BOTH, 7);
    expect(keys(gone)).toEqual(["a/c"]);
    expect(ended.map(({ callId }) => callId)).toEqual(["c"]);
    expect(keys(items.open)).toEqual(["b/c"]);
    expect(items.answered.map(({ key, endedAt }) => [key, endedAt])).toEqual([["a/c", 7]]);
  });

  it("keeps the parts of a question together, and one that is on its way open", () => {
    const items = new InboxItems();
    items.take([question("a", "c", "d")], [], BOTH, 1);
    items.take([question("a", "d")], [], BOTH, 2);
    expect(keys(items.shown)).toEqual(["a/c"]);
    expect(items.shown[0]?.question?.calls.length).toBe(2);
    items.shown[0]!.isSending = true;
    expect(items.take([], [], BOTH, 3).ended).toEqual([]);
    expect(items.open.length).toBe(1);
    items.shown[0]!.isSending = false;
    items.take([], [], BOTH, 4);
    expect(items.open.length).toBe(0);
  });

  it("never moves or loses what is shown, whatever comes and goes", () => {
    const lists = fc.array(fc.uniqueArray(fc.constantFrom("a", "b", "d", "e", "f"), { maxLength: 5 }), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(lists, (steps) => {
        const items = new InboxItems();
        steps.forEach((ids, at) => {
          const before = keys(items.open);
          items.take(
            ids.map((id) => question(id)),
            [],
            BOTH,
            at,
          );
          const still = before.filter((key) => (ids as string[]).includes(key[0]!));
          expect(keys(items.open).filter((key) => before.includes(key))).toEqual(still);
          const listed = [...keys(items.open), ...keys(items.fresh)].sort();
          expect(listed).toEqual(ids.map((id) => `${id}/c`).sort());
        });
      }),
    );
  });
});
