import type { FileDiff, ToolCall } from "./protocol.ts";

export interface LineCounts {
  added: number;
  removed: number;
}

/** Return the diff that a call proposes or has made. */
export function diffOf(call: ToolCall): FileDiff | undefined {
  return call.confirmation_request?.file_edit_details ?? call.output?.diff;
}
