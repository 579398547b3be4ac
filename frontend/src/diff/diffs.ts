// What a change is called and how large it is.

import { comparable, textHunks } from "./line-diff.ts";
import type { FileDiff, ToolCall } from "../server/protocol.ts";

export interface LineCounts {
  added: number;
  removed: number;
}

/** Return the diff that a call proposes or has made; the document of a question is none. */
export function diffOf(call: ToolCall): FileDiff | undefined {
  if (call.tool_name === "ask_user" || call.tool_name === "elicitation") return undefined;
  return call.confirmation_request?.file_edit_details ?? call.output?.diff;
}

/** Return how many lines a change adds and removes, as its diff shows them. */
export function countLines(before: string, after: string): LineCounts {
  const counts = { added: 0, removed: 0 };
  for (const { oldFrom, oldTo, newFrom, newTo } of textHunks(comparable(before, after), after)) {
    counts.added += newTo - newFrom;
    counts.removed += oldTo - oldFrom;
  }
  return counts;
}
