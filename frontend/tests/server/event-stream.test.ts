import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { type Frame, readFrames } from "../../src/server/event-stream.ts";

/** Return the events of a body that comes in pieces of bytes. */
async function framesOf(pieces: Uint8Array[], connection = new AbortController()): Promise<Frame[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  const all: Frame[] = [];
  for await (const frames of readFrames(body, connection)) all.push(...frames);
  return all;
}

function cut(text: string, sizes: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.slice(at, at + size));
    at += size;
  }
  return [...pieces, bytes.slice(at)];
}

describe("server-sent events", () => {
  it("are the same wherever their bytes are divided", async () => {
    const event = fc.tuple(fc.option(fc.nat(99)), fc.constantFrom("a", "\u4e2d\u{1f600}", '{"a":1}'));
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 9 })),
        async (events, sizes) => {
          const text = events
            .map(([id, data]) => `: comment\n${id === null ? "" : `id: ${id}\n`}data: ${data}\n\n`)
            .join("");
          const expected = events.map(([id, data]) => (id === null ? { data } : { id, data }));
          expect(await framesOf(cut(text, sizes))).toEqual(expected);
        },
      ),
    );
  });

  it("join the lines of their data, and comments alone are none", async () => {
    expect(await framesOf(cut(": ping\n\ndata: a\ndata: b\n\n", []))).toEqual([{ data: "ab" }]);
  });

  it("are none of an event that was cut off", async () => {
    expect(await framesOf(cut("id: 1\ndata: a\n\nid: 2\ndata: b", []))).toEqual([{ id: 1, data: "a" }]);
  });

  it("end the connection after a long silence", async () => {
    vi.useFakeTimers();
    try {
      const connection = new AbortController();
      const frames = readFrames(new ReadableStream<Uint8Array>(), connection);
      void frames.next();
      await vi.advanceTimersByTimeAsync(39_000);
      expect(connection.signal.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(connection.signal.aborted).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});
