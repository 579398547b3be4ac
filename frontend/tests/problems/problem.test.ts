import { describe, expect, it, vi } from "vitest";
import { inject } from "../support/navigator.ts";

/** Return the text of a refusal, read from an answer, for a user with this language. */
async function textFor(language: string, status: number, answer: unknown): Promise<string> {
  inject([language]);
  vi.resetModules();
  const { problemOf } = await import("../../src/problems/problem.ts");
  const { refusalIn } = await import("../../src/server/session.ts");
  return problemOf(refusalIn(status, "", answer));
}

describe("the text of a refusal", () => {
  it.each([
    ["en", "This device was removed already."],
    ["zh-CN", "此设备已被移除。"],
  ])("is said by its code in %s, whatever the server says", async (language, expected) => {
    const answer = { error: "you have no such device", code: "NO_SUCH_DEVICE" };
    expect(await textFor(language, 404, answer)).toBe(expected);
  });

  it("has what the server says where only it knows the reason, made visible", async () => {
    const answer = { error: "no \u202eroom\nleft", code: "COMPANION_REFUSED" };
    const text = await textFor("zh-CN", 403, answer);
    expect(text).toMatch(/^伴随程序未执行此操作:?：?/);
    expect(text).toContain("left");
    expect(text).not.toContain("\u202e");
    expect(text).not.toContain("\n");
  });

  it.each([
    ["over HTTP", { error: { code: 404, message: "Task not found: x", details: [{ reason: "TASK_NOT_FOUND" }] } }],
    [
      "in JSON-RPC",
      { error: { code: -32001, message: "Task not found: x", data: [{}, { reason: "TASK_NOT_FOUND" }] } },
    ],
  ])("is read from an error of A2A %s", async (_, answer) => {
    expect(await textFor("en", 404, answer)).toBe("There is no such turn any more, or it is not yours.");
  });

  it.each([
    [401, { error: "the token is not this server's token" }, "This browser is not paired any more. Pair it again."],
    [502, "<html>", "The server cannot do this at the moment. Try again soon."],
    [418, {}, "The server failed to do this. Its log has the details."],
    [403, { error: "constructor", code: "constructor" }, "constructor"],
    [400, null, "The server failed to do this. Its log has the details."],
  ])("without a known code is said by its status, else as the server says it: %i", async (status, answer, expected) => {
    expect(await textFor("en", status, answer)).toBe(expected);
  });
});
