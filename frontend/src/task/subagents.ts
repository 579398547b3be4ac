// What a task says of its subagents: their calls are asked in the task that began them.

import { LOOP_QUESTION, type TaskRow, type ToolCall } from "../server/protocol.ts";
import { visibleLine } from "../text/safe.ts";

/** Tool with which an agent begins a subagent. */
export const INVOKE_AGENT = "invoke_agent";
/** Stands in the id of a question between the call that asks and the call that it asks for. */
const QUESTION_MARK = "?";
const ESCAPED_MARK = "%3F";
const LONGEST_NAME = 60;
/** Characters of a call that the title of its task has at least, unless the call is shorter. */
const SAID_IN_TITLE = 40;

/** Return whether a call is asked here for a subagent: its id is `CALL?ID`. A server's question in a call is `CALL?1`. */
function isRelayed(call: ToolCall): boolean {
  const at = call.tool_call_id.lastIndexOf(QUESTION_MARK);
  if (at < 0 || call.tool_name === LOOP_QUESTION) return false;
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

/** Return the id of the task that a call has begun for a subagent, among those of its task, by the title that says the call. */
export function childOf(call: ToolCall, children: readonly TaskRow[]): string | undefined {
  const { agent_name: name, prompt } = call.input_parameters ?? {};
  if (typeof name !== "string" || typeof prompt !== "string") return undefined;
  // A title has the first line alone.
  const said = (`${name}: ${prompt.trim()}`.split(/\r?\n/, 1)[0] ?? "").slice(0, SAID_IN_TITLE);
  return children.find(({ title }) => title.startsWith(said))?.id;
}
