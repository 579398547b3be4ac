import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { MessageQueue } from "../src/queue.ts";

const message = (text: string) => ({ text, mode: "", images: [] });
let stored: Map<string, string>;
let room: number;

beforeEach(() => {
  stored = new Map();
  room = 1000;
  vi.stubGlobal("sessionStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (value.length > room) throw new Error("quota");
      stored.set(key, value);
    },
    removeItem: (key: string) => stored.delete(key),
  });
});

describe("the messages that wait", () => {
  it("stay in their order, over a reload, and have ids of their own", () => {
    const step = fc.oneof(fc.string({ maxLength: 5 }), fc.nat(5));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        stored.clear();
        let queue = new MessageQueue("session");
        const expected: string[] = [];
        for (const one of steps) {
          if (typeof one === "string") {
            queue.add(message(one));
            expected.push(one);
          } else if (expected.length) {
            const at = one % expected.length;
            queue.remove(queue.messages[at]?.id ?? -1);
            expected.splice(at, 1);
          }
          queue = new MessageQueue("session");
          expect(queue.messages.map((each) => each.text)).toEqual(expected);
          expect(new Set(queue.messages.map((each) => each.id)).size).toBe(expected.length);
        }
        expect(stored.size).toBe(expected.length ? 1 : 0);
      }),
    );
  });

  it("are those of one session", () => {
    new MessageQueue("one").add(message("a"));
    expect(new MessageQueue("two").messages).toEqual([]);
  });

  it("are at most 20", () => {
    const queue = new MessageQueue("session");
    for (let count = 0; count < 20; count += 1) {
      expect(queue.isFull).toBe(false);
      queue.add(message("a"));
    }
    expect(queue.isFull).toBe(true);
  });

  it("wait also if they are too large to be stored, and older ones do not come back in their place", () => {
    const queue = new MessageQueue("session");
    queue.add(message("small"));
    queue.add(message("x".repeat(room)));
    expect(queue.messages).toHaveLength(2);
    expect(new MessageQueue("session").messages).toEqual([]);
  });

  it("are none if what is stored is damaged", () => {
    stored.set("queue:session", "[{");
    expect(new MessageQueue("session").messages).toEqual([]);
  });
});
