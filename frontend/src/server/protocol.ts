// The messages of A2A 1.0 and of the development-tool extension, as far as the page reads them (docs/reference/protocol.md).

export const EXTENSION = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";

export type TaskState =
  "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "canceled" | "rejected";

/** Tool name of our agent's question whether a model that repeats itself may go on. */
export const LOOP_QUESTION = "continue_repeating";

export const ENDED: ReadonlySet<TaskState> = new Set(["completed", "failed", "canceled", "rejected"]);

export type CallStatus = "PENDING" | "EXECUTING" | "SUCCEEDED" | "FAILED" | "CANCELLED";

export interface FileDiff {
  file_name: string;
  file_path: string;
  old_content?: string;
  new_content: string;
}

export interface ConfirmationOption {
  id: string;
  name: string;
  description?: string;
  /** What it does, where the id does not tell: allow_once, allow_always, reject_once or reject_always. */
  kind?: string;
  /** What a lasting answer covers: a tool, a server, or the first words of commands. */
  covers?: string;
}

export interface ConfirmationRequest {
  options: ConfirmationOption[];
  execute_details?: { command: string; working_directory?: string; trial?: { id: string; changes?: string } };
  file_edit_details?: FileDiff;
  mcp_details?: { server_name: string; tool_name: string };
  generic_details?: { description: string };
  /** Option of an answer in the user's own words, which is not listed. */
  words_option?: string;
  /** The last sentence that the agent said before the call. */
  wants?: string;
  /** What is known to make the call risky. */
  risks?: string[];
}

export interface ToolCall {
  tool_call_id: string;
  status: CallStatus;
  tool_name: string;
  description?: string;
  input_parameters?: Record<string, unknown>;
  live_content?: string;
  output?: { text?: string; diff?: FileDiff; structured_data?: unknown; exit_code?: number };
  error?: { message: string; type?: string };
  confirmation_request?: ConfirmationRequest;
  /** The files that a subagent has changed for the call. */
  changed_files?: { file_path: string; added?: number; removed?: number }[];
}

export interface Part {
  text?: string;
  data?: unknown;
  raw?: string;
  url?: string;
  mediaType?: string;
  filename?: string;
}

export interface Message {
  role: string;
  messageId: string;
  parts: Part[];
}

/** A task without its events. Times are in milliseconds since 1970. */
export interface TaskRow {
  id: string;
  contextId: string;
  state: TaskState;
  changedAt: number;
  createdAt: number;
  title: string;
  workspace: string;
  model: string;
  parent: string;
  error: string;
  /** Number of the newest event. */
  seq: number;
  pending: ToolCall[];
}

/** Tokens of requests to models: input with what was cached, output with thoughts. */
export interface Usage {
  input: number;
  output: number;
  cached: number;
  thought: number;
  /** US dollars, without those of requests whose price is not known. */
  cost: number;
  unpriced: number;
}

/** An event. `seq` is its number in the task, if it is stored. */
export type TaskEvent = { seq?: number } & Happening;

export type Happening =
  | { kind: "prompt"; messageId: string; text: string; at: number; row: TaskRow }
  | { kind: "state"; state: TaskState; error: string; reason: string; pending: ToolCall[]; at: number }
  | { kind: "text"; messageId: string; text: string; replaces: string; at: number }
  | { kind: "thought"; subject: string; description: string; at: number }
  | { kind: "call"; call: ToolCall; at: number }
  | { kind: "checkpoint"; callId: string; checkpointId: string }
  | { kind: "pictures"; callId: string; messageId: string; event: number; numbers: number[] }
  | { kind: "usage"; usage: Usage }
  | { kind: "answered"; callId: string; optionId: string; by: string; at: number; newContent?: string };

type Json = Record<string, unknown>;

const object = (value: unknown): Json => (value !== null && typeof value === "object" ? (value as Json) : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);
const time = (value: unknown): number => Date.parse(text(value)) || 0;

function stateOf(value: unknown): TaskState {
  return text(value).replace("TASK_STATE_", "").toLowerCase().replace("_", "-") as TaskState;
}

function callsIn(message: unknown): ToolCall[] {
  return list(object(message).parts)
    .map((part) => object(object(part).data))
    .filter((data) => typeof data.tool_call_id === "string" && typeof data.tool_name === "string")
    .map((data) => data as unknown as ToolCall);
}

/** Return the row of a Task object. */
export function rowOf(value: unknown): TaskRow {
  const task = object(value);
  const status = object(task.status);
  const own = object(object(task.metadata)[EXTENSION]);
  return {
    id: text(task.id),
    contextId: text(task.contextId),
    state: stateOf(status.state),
    changedAt: time(status.timestamp),
    createdAt: time(own.created_at) || time(status.timestamp),
    title: text(own.title),
    workspace: text(own.workspace_path),
    model: text(own.model),
    parent: text(own.parent_task_id),
    error: text(own.error),
    seq: typeof own.seq === "number" ? own.seq : 0,
    pending: callsIn(status.message),
  };
}

function textOf(message: Json): string {
  return list(message.parts)
    .map((part) => {
      const found = object(part);
      return (
        text(found.text) ||
        (found.raw !== undefined || found.url !== undefined ? `[${text(found.filename) || "file"}]` : "")
      );
    })
    .join("");
}

/** Return the events in one item of a stream; of items that the page does not know, none. */
export function eventsOf(item: unknown): TaskEvent[] {
  const content = object(item);
  const own = object(object(object(content.statusUpdate).metadata)[EXTENSION]);
  return [...notesOf(own), ...mainEventsOf(content)];
}

/** Return what an event says of the time before it. */
function notesOf(own: Json): TaskEvent[] {
  const notes: TaskEvent[] = list(own.checkpoints)
    .map(object)
    .map((checkpoint) => ({
      kind: "checkpoint",
      callId: text(checkpoint.tool_call_id),
      checkpointId: text(checkpoint.checkpoint_id),
    }));
  for (const pictures of list(own.pictures).map(object))
    notes.push({
      kind: "pictures",
      callId: text(pictures.tool_call_id),
      messageId: text(pictures.message_id),
      event: count(pictures.event),
      numbers: list(pictures.numbers).filter((number): number is number => typeof number === "number"),
    });
  const used = object(own.usage);
  if (own.usage !== undefined) {
    notes.push({
      kind: "usage",
      usage: {
        input: count(used.input_tokens),
        output: count(used.output_tokens),
        cached: count(used.cached_tokens),
        thought: count(used.thought_tokens),
        cost: count(object(used.cost).amount),
        unpriced: count(used.unpriced_requests),
      },
    });
  }
  return notes;
}

function mainEventsOf(content: Json): TaskEvent[] {
  if (content.task !== undefined) {
    const row = rowOf(content.task);
    // The task of a slash command begins without a message; its title is what was typed.
    if (!list(object(content.task).history).length && row.title.startsWith("/")) {
      return [{ kind: "prompt", messageId: row.id, text: row.title, at: row.changedAt, row }];
    }
    return list(object(content.task).history)
      .map(object)
      .filter((message) => message.role === "ROLE_USER")
      .map((message) => ({
        kind: "prompt",
        messageId: text(message.messageId),
        text: textOf(message),
        at: row.changedAt,
        row,
      }));
  }
  const update = object(content.statusUpdate);
  const status = object(update.status);
  const message = object(status.message);
  const own = object(object(update.metadata)[EXTENSION]);
  const at = time(status.timestamp);
  const first = object(object(list(message.parts)[0]).data);
  switch (own.kind) {
    case "STATE_CHANGE":
      return [
        {
          kind: "state",
          state: stateOf(status.state),
          error: text(own.error),
          reason: text(own.reason),
          pending: callsIn(message),
          at,
        },
      ];
    case "TEXT_CONTENT":
      return [
        {
          kind: "text",
          messageId: text(message.messageId),
          text: textOf(message),
          replaces: text(own.replaces_message_id),
          at,
        },
      ];
    case "THOUGHT":
      return [{ kind: "thought", subject: text(first.subject), description: text(first.description), at }];
    case "TOOL_CALL_UPDATE":
      return callsIn(message).map((call) => ({ kind: "call", call, at }));
    case "TOOL_CALL_CONFIRMATION": {
      const written = object(first.file_details).new_content;
      return [
        {
          kind: "answered",
          callId: text(first.tool_call_id),
          optionId: text(first.selected_option_id),
          by: text(own.answered_by),
          at,
          ...(typeof written === "string" ? { newContent: written } : {}),
        },
      ];
    }
    default:
      return [];
  }
}
