// What a task says of its subagents: their calls are asked in the task that began them.

import type { ToolCall } from "./protocol.ts";
import { visibleLine } from "./safe.ts";

/** Tool with which an agent begins a subagent. */
export const INVOKE_AGENT = "invoke_agent";
/** Stands in the id of a question between the call that asks and the call that it asks for. */
const QUESTION_MARK = "?";
const ESCAPED_MARK = "%3F";
const LONGEST_NAME = 60;

/** Return whether a call is asked here for a subagent: its id is `CALL?ID`. A server's question in a call is `CALL?1`. */
function isRelayed(call: ToolCall): boolean {
  const at = call.tool_call_id.lastIndexOf(QUESTION_MARK);
  if (at < 0 || call.tool_name === "continue_repeating") return false;
  return (
    typeof call.input_parameters?.asked_in !== "string" ||
    call.tool_call_id.slice(at).toUpperCase().includes(ESCAPED_MARK)
  );
}

/** Return the name of the subagent that wants a call; empty for a call of the agent itself. */
export function subagentOf(call: ToolCall): string {
  return isRelayed(call) ? visibleLine((call.description ?? "").split(": ", 1)[0] ?? "", LONGEST_NAME) : "";
}

/** Return the description of a call without the name of the subagent that wants it. */
export function ownWords(call: ToolCall): string {
  const description = call.description ?? "";
  const at = description.indexOf(": ");
  return isRelayed(call) && at >= 0 ? description.slice(at + 2) : description;
}
