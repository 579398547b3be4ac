// Slash commands over A2A: the extension's method command/execute, which is JSON-RPC.

import { EXTENSION } from "./protocol.ts";
import { ApiError, refusalIn, token } from "./session.ts";
import { SERVER } from "../place.ts";

/** Start a slash command for a folder; return the id of its task. Throws an ApiError with the reason if it does not start. */
export async function execute(path: string[], args: string, workspace: string): Promise<string> {
  let response: Response;
  try {
    response = await fetch(SERVER, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token()}`,
        "A2A-Version": "1.0",
        "A2A-Extensions": EXTENSION,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "command/execute",
        params: { command_path: path, args, metadata: workspace ? { [EXTENSION]: { workspace_path: workspace } } : {} },
      }),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    throw new ApiError(0, "");
  }
  const value = (await response.json().catch(() => ({}))) as { result?: Record<string, unknown> };
  const { result } = value;
  const id = result?.execution_id ?? result?.executionId;
  if (typeof id === "string" && id && !/FAILED_TO_START/.test(String(result?.status))) return id;
  const status = response.ok ? 400 : response.status;
  throw typeof result?.message === "string"
    ? new ApiError(status, result.message)
    : refusalIn(status, response.statusText, value);
}
