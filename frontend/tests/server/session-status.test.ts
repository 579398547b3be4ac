import { expect, it, vi } from "vitest";
import { StatusReader } from "../../src/server/session-status.ts";
import { json, serve } from "../support/server.ts";

const settled = (reader: StatusReader, model: string | undefined) =>
  vi.waitFor(() => expect(reader.status?.model).toBe(model));

it("a session is asked for once at each moment, and nothing is known of another one until it answers", async () => {
  const asked = serve((_, number) => json({ result: { model: `model ${number}`, efforts: ["low", 3] } }));
  const changed = vi.fn();
  const reader = new StatusReader(changed);
  reader.look({ contextId: "one" }, "turn 1");
  reader.look({ contextId: "one" }, "turn 1");
  await settled(reader, "model 1");
  expect(reader.status).toMatchObject({ efforts: ["low"], tokens: undefined, window: 0, cost: "", unpriced: [] });
  reader.look({ contextId: "one" }, "turn 2");
  expect(reader.status?.model).toBe("model 1");
  await settled(reader, "model 2");
  reader.look({ contextId: "two" }, "turn 2");
  expect(reader.status).toBeUndefined();
  await settled(reader, "model 3");
  expect(asked).toHaveLength(3);
  expect(changed).toHaveBeenCalledTimes(3);
});

it("an answer that comes after another question was asked is not taken", async () => {
  const answers: ((response: Response) => void)[] = [];
  serve(() => new Response());
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => answers.push(resolve)));
  const reader = new StatusReader(() => undefined);
  reader.look({ contextId: "one" }, "a");
  reader.look({ contextId: "two" }, "a");
  answers[1]?.(json({ result: { model: "new" } }));
  await settled(reader, "new");
  answers[0]?.(json({ result: { model: "old" } }));
  await new Promise((resolve) => setTimeout(resolve));
  expect(reader.status?.model).toBe("new");
});
