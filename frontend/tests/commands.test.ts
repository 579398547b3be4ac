import { describe, expect, it } from "vitest";
import { execute, runCommand } from "../src/client.ts";
import { EXTENSION } from "../src/server/protocol.ts";
import { ApiError } from "../src/server/session.ts";
import { json, serve } from "./support/server.ts";

const problemOf = (promise: Promise<unknown>): Promise<ApiError> =>
  promise.then(
    () => expect.fail("expected a problem"),
    (error: unknown) => error as ApiError,
  );

describe("a slash command", () => {
  it("is a call of JSON-RPC with the token, in the folder that is named", async () => {
    const asked = serve(() => json({ result: { execution_id: "task", status: "STARTED" } }));
    expect(await execute(["mcp", "refresh"], "now", { workspace: "/work" })).toBe("task");
    expect(asked).toHaveLength(1);
    expect(asked[0]?.headers.get("Authorization")).toBe("Bearer secret");
    expect(asked[0]?.headers.get("A2A-Extensions")).toBe(EXTENSION);
    expect(asked[0]?.body).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "command/execute",
      params: {
        command_path: ["mcp", "refresh"],
        args: "now",
        metadata: { [EXTENSION]: { workspace_path: "/work" } },
      },
    });
  });

  it("as it is typed has its first word as its name, and the rest as it stands", async () => {
    const asked = serve(() => json({ result: { execution_id: "task" } }));
    expect(await runCommand(" /chat  fork  a b ", { contextId: "c", mode: "plan" })).toBe("task");
    expect(asked[0]?.body).toMatchObject({
      params: {
        command_path: ["chat"],
        args: "fork  a b",
        metadata: { contextId: "c", [EXTENSION]: { approval_mode: "plan" } },
      },
    });
  });

  it("names no folder if there is none, and takes both spellings of the id", async () => {
    const asked = serve(() => json({ result: { executionId: "task" } }));
    expect(await execute(["help"], "", { workspace: "" })).toBe("task");
    expect(asked[0]?.body).toMatchObject({ params: { metadata: {} } });
  });

  it.each([
    [{ result: { execution_id: "task", status: "FAILED_TO_START", message: "no server" } }, 200, 400, "no server"],
    [{ error: { message: "unknown command" } }, 200, 400, "unknown command"],
    [{ result: { execution_id: "", message: { text: "odd" } }, error: { message: "odd" } }, 200, 400, "odd"],
    [{}, 401, 401, ""],
    [null, 502, 502, ""],
  ])("that does not start says why: %#", async (value, status, expected, message) => {
    serve(() => (value === null ? new Response("<html>", { status }) : json(value, status)));
    const problem = await problemOf(execute(["help"], "", { workspace: "" }));
    expect(problem).toBeInstanceOf(ApiError);
    expect(problem.status).toBe(expected);
    expect(problem.message).toBe(message);
  });

  it("says that the server was not reached", async () => {
    serve(() => {
      throw new TypeError("network");
    });
    expect(await problemOf(execute(["help"], "", { workspace: "" }))).toMatchObject({ status: 0 });
  });
});
