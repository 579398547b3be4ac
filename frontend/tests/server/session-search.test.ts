import { describe, expect, it } from "vitest";
import { SessionSearch } from "../../src/server/session-search.ts";
import { json, serve } from "../support/server.ts";

const hits = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => ({
    contextId: String(from + at),
    title: "",
    workspace: "",
    state: "done",
    changed: 0,
    prompt: "",
  }));

describe("a search over the sessions", () => {
  it("goes on until enough is found, and then when it is told to", async () => {
    const asked = serve((_, number) =>
      json({
        sessions: hits(number * 30, number * 30 + 30),
        searched: 100,
        next: number < 4 ? `n${number}` : "",
      }),
    );
    let told = 0;
    const search = new SessionSearch({ words: "a b", state: "done", archived: false }, () => {
      told += 1;
    });
    await search.more();
    expect(search.hits).toHaveLength(60);
    expect([search.searched, search.isDone, search.isRunning]).toEqual([200, false, false]);
    await search.more();
    expect(search.isDone).toBe(true);
    await search.more();
    expect(asked.map((one) => new URL(one.path, "http://x").searchParams.get("after"))).toEqual(["", "n1", "n2", "n3"]);
    expect(asked[0]?.path).toContain("words=a+b&state=done");
    expect(told).toBe(6);
  });

  it("finds a session once", async () => {
    serve((_, number) => json({ sessions: hits(0, 3), searched: 3, next: number < 2 ? "n" : "" }));
    const search = new SessionSearch({ words: "a", state: "", archived: false }, () => undefined);
    await search.more();
    expect(search.hits.map((hit) => hit.contextId)).toEqual(["0", "1", "2"]);
  });

  it("takes nothing any more once it is stopped", async () => {
    const search: SessionSearch = new SessionSearch({ words: "a", state: "", archived: false }, () => undefined);
    serve(() => {
      search.stop();
      return json({ sessions: hits(0, 3), searched: 3, next: "n" });
    });
    await search.more();
    expect(search.hits).toEqual([]);
    expect(search.isRunning).toBe(false);
  });

  it("says that the server was not reached, and can go on", async () => {
    serve((_, number) => {
      if (number === 1) throw new TypeError("network");
      return json({ sessions: hits(0, 1), searched: 1, next: "" });
    });
    const search = new SessionSearch({ words: "a", state: "", archived: false }, () => undefined);
    await expect(search.more()).rejects.toMatchObject({ status: 0 });
    expect(search.isRunning).toBe(false);
    await search.more();
    expect(search.hits).toHaveLength(1);
  });
});
