// The name of who asks, where it is not the agent itself.

import type { ToolCall } from "../server/protocol.ts";
import { visibleLine } from "../text/safe.ts";

/** Return the name of the MCP server that asks; empty if the agent does. */
export function serverOf(call: ToolCall): string {
  const server = call.input_parameters?.server;
  return /^(elicitation|sampling)$/.test(call.tool_name) && typeof server === "string" ? visibleLine(server, 60) : "";
}
