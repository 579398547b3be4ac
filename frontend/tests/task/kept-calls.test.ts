import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CallItem, KeptCalls, shortened } from "../../src/task/kept-calls.ts";
import type { ToolCall } from "../../src/server/protocol.ts";
import { call } from "../support/events.ts";

const item = (id: string, more: Partial<ToolCall>): CallItem => ({
  is: "call",
  key: id,
  call: call(id, "SUCCEEDED", more),
  isFirst: true,
  isLast: true,
  lines: 0,
  since: 0,
  until: 0,
  fetched: 0,
});
const sizeOf = (one: CallItem): number => one.call.output?.text?.length ?? 0;

describe("the results of calls", () => {
  it("are kept up to the limit, the newest always; what is not kept is fetched by its number", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2000 }), { maxLength: 20 }), (sizes) => {
        const kept = new KeptCalls(3000);
        const items = sizes.map((size, at) => item(String(at), { output: { text: "x".repeat(size) } }));
        for (const [at, one] of items.entries()) kept.keep(one, at + 1);
        const large = items.filter((one) => sizeOf(one) > 400);
        const total = large.reduce((sum, one) => sum + sizeOf(one), 0);
        expect(total <= 3000 || large.length === 1).toBe(true);
        const newestGone = items.findLast((one) => one.fetched);
        if (newestGone) expect(total + (sizes[newestGone.fetched - 1] ?? 0)).toBeGreaterThan(3000);
        for (const [at, one] of items.entries())
          expect([sizeOf(one), one.fetched]).toEqual(one.fetched ? [0, at + 1] : [sizes[at], 0]);
      }),
    );
  });

  it("that are not kept still say which file was changed, and how an error began", () => {
    const kept = new KeptCalls(500);
    const diff = { file_name: "a", file_path: "/a", old_content: "x".repeat(500), new_content: "y" };
    const first = item("a", { output: { diff }, error: { message: "e".repeat(500) } });
    kept.keep(first, 1);
    kept.keep(item("b", { output: { text: "x".repeat(500) } }), 2);
    expect(first.call.output?.diff).toEqual({ file_name: "a", file_path: "/a", old_content: "", new_content: "" });
    expect(first.call.error?.message).toHaveLength(200);
  });

  it("are shortened to what is ever shown", () => {
    const one = item("a", {
      input_parameters: { text: "p".repeat(5000), todos: [1], list: [1], count: 3 },
      live_content: "live",
      output: { structured_data: { a: 1 } },
    });
    new KeptCalls().keep(one, 1);
    expect(one.call.input_parameters).toEqual({ text: "p".repeat(2000), list: undefined, count: 3 });
    expect(one.call.live_content).toBeUndefined();
    expect(one.call.output).toEqual({ text: '{\n  "a": 1\n}' });
    expect(shortened("abcdef", 3)).toBe("def");
  });

  it("have a diff once, and not as the question, too", () => {
    const diff = { file_name: "a", file_path: "/a", new_content: "y" };
    const one = item("a", { output: { diff }, confirmation_request: { options: [], file_edit_details: diff } });
    new KeptCalls().keep(one, 1);
    expect(one.call.confirmation_request).toEqual({ options: [] });
    expect(one.call.output?.diff).toEqual(diff);
  });
});
