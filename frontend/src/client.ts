// A2A 1.0 over HTTP: lists, prompts, answers and commands.

import { EXTENSION, rowOf, type TaskRow } from "./server/protocol.ts";
import { shownCost } from "./task/money.ts";
import { ApiError, api, answererName, refusalIn, token } from "./server/session.ts";
import { SERVER } from "./place.ts";

export function headers(more: Record<string, string> = {}): Record<string, string> {
  return {
    Authorization: `Bearer ${token()}`,
    "A2A-Version": "1.0",
    "A2A-Extensions": EXTENSION,
    "X-Isthmus-Notes": "1",
    ...more,
  };
}

async function call(method: string, path: string, body?: unknown): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(SERVER + path, {
      method,
      headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    throw new ApiError(0, "");
  }
  const value: unknown = await response.json().catch(() => ({}));
  if (!response.ok) throw refusalIn(response.status, response.statusText, value);
  return value;
}

/** Which tasks are listed: those that changed at or after a time in ms, or those that wait for the user. */
export interface TaskQuery {
  size: number;
  since?: number;
  isWaiting?: boolean;
}

/** Return the tasks that changed last, newest first; those after a page by its `next`. */
export async function listTasks(
  { size, since = 0, isWaiting = false }: TaskQuery,
  pageToken = "",
): Promise<{ tasks: TaskRow[]; next: string; total: number }> {
  const query = new URLSearchParams({ pageSize: String(size) });
  if (since) query.set("statusTimestampAfter", new Date(since).toISOString());
  if (isWaiting) query.set("status", "TASK_STATE_INPUT_REQUIRED");
  if (pageToken) query.set("pageToken", pageToken);
  const page = (await call("GET", `tasks?${query}`)) as {
    tasks?: unknown[];
    nextPageToken?: string;
    totalSize?: number;
  };
  return { tasks: (page.tasks ?? []).map(rowOf), next: page.nextPageToken ?? "", total: page.totalSize ?? 0 };
}

/** Return the tasks of one session, in the order in which they began. */
export async function tasksOf(contextId: string): Promise<TaskRow[]> {
  const query = new URLSearchParams({ pageSize: "100", contextId });
  const page = (await call("GET", `tasks?${query}`)) as { tasks?: unknown[] };
  const rows = (page.tasks ?? []).map(rowOf).filter((row) => !row.parent);
  return rows.sort((one, other) => one.createdAt - other.createdAt);
}

export async function getTask(taskId: string): Promise<TaskRow> {
  return rowOf(await call("GET", `tasks/${encodeURIComponent(taskId)}?historyLength=0`));
}

/** Return a new id for a message. */
export function newId(): string {
  return crypto.randomUUID?.() ?? String(Math.random());
}

async function send(message: Record<string, unknown>): Promise<TaskRow> {
  const sent = await call("POST", "message:send", {
    configuration: { returnImmediately: true },
    message: { messageId: newId(), role: "ROLE_USER", ...message },
  });
  return rowOf((sent as { task?: unknown }).task);
}

/** Where a message goes, and the settings that it brings: those that are missing stay as they are in the session. */
export interface Scope {
  contextId?: string;
  workspace?: string;
  mode?: string;
  model?: string;
}

function settingsOf(scope: Scope): Record<string, string> {
  return {
    ...(scope.workspace ? { workspace_path: scope.workspace } : {}),
    ...(scope.mode ? { approval_mode: scope.mode } : {}),
    ...(scope.model ? { model: scope.model } : {}),
  };
}

export interface PromptOptions extends Scope {
  images?: { data: string; mediaType: string; name: string }[];
}

/** Send a prompt: to a new session, or to the one with `contextId`. */
export function prompt(text: string, options: PromptOptions): Promise<TaskRow> {
  const settings = settingsOf(options);
  const files = (options.images ?? []).map((image) => ({
    raw: image.data,
    mediaType: image.mediaType,
    filename: image.name,
  }));
  return send({
    ...(options.contextId ? { contextId: options.contextId } : {}),
    parts: [{ text }, ...files],
    ...(Object.keys(settings).length ? { metadata: { [EXTENSION]: settings } } : {}),
  });
}

/** Answer a question. Throws an ApiError if it was answered before. */
export function answer(
  taskId: string,
  callId: string,
  optionId: string,
  newContent?: string,
  words = "",
): Promise<TaskRow> {
  return answerAll(taskId, [{ callId, optionId, content: newContent }], words);
}

/** An answer: an option of a call, and the text that goes with it. */
export interface Reply {
  callId: string;
  optionId: string;
  content: string | undefined;
}

/**
 * Answer questions of a task: all of them, or none. The model reads `words` once the calls have run. Throws an ApiError if
 * a question was answered before; then the words are not sent either.
 */
export function answerAll(taskId: string, replies: readonly Reply[], words = ""): Promise<TaskRow> {
  const parts = replies.map(({ callId, optionId, content }) => ({
    data: {
      tool_call_id: callId,
      selected_option_id: optionId,
      ...(content === undefined ? {} : { file_details: { new_content: content } }),
    },
    mediaType: "application/json",
  }));
  return send({
    taskId,
    parts: words ? [...parts, { text: words }] : parts,
    metadata: { [EXTENSION]: { answered_by: answererName() } },
  });
}

/** Return the session of a task; for that of a subagent the session of the task that began it. */
export async function sessionOfTask(taskId: string): Promise<string> {
  const row = await getTask(taskId);
  return row.parent ? sessionOfTask(row.parent) : row.contextId;
}

/** Send a message in place of answers: the open questions are rejected, and the agent goes on with the message. */
export function tell(taskId: string, text: string): Promise<TaskRow> {
  return send({ taskId, parts: [{ text }] });
}

/** A state of a session that no event tells: what is in force in it, and how full its conversation is. */
export interface SessionStatus {
  mode: string;
  model: string;
  /** How much the model thinks; empty if it does not. */
  effort: string;
  /** The levels to choose from, beside "default". */
  efforts: string[];
  tokens: number | undefined;
  window: number;
  /** What the conversation has cost, as far as that is known; empty if nothing is. */
  cost: string;
  /** Models whose cost is not known, since they have no price. */
  unpriced: string[];
  /** What the whole session may cost; empty without a limit. */
  costLimit: string;
  /** Tokens of all requests of the session. */
  used: { input: number; cached: number; output: number } | undefined;
  /** Estimates of the parts of `tokens`. */
  parts: { instructions: number; contents: number; words: number } | undefined;
}

export async function sessionStatus(place: { contextId: string } | { workspace: string }): Promise<SessionStatus> {
  const found = (await call("POST", "", {
    jsonrpc: "2.0",
    id: 1,
    method: "isthmus/session",
    params: { metadata: "contextId" in place ? place : { [EXTENSION]: { workspace_path: place.workspace } } },
  })) as {
    result?: {
      approval_mode?: unknown;
      model?: unknown;
      effort?: unknown;
      efforts?: unknown;
      context_tokens?: unknown;
      context_window?: unknown;
      cost?: { amount?: unknown; currency?: unknown };
      unpriced_models?: unknown;
      cost_limit?: { amount?: unknown; currency?: unknown };
      tokens_used?: Record<string, unknown>;
      context_parts?: Record<string, unknown>;
    };
  };
  const {
    approval_mode: mode,
    model,
    effort,
    efforts,
    context_tokens: tokens,
    context_window: size,
    cost,
    unpriced_models: unpriced,
    cost_limit: limit,
    tokens_used: used,
    context_parts: parts,
  } = found.result ?? {};
  return {
    mode: typeof mode === "string" ? mode : "",
    model: typeof model === "string" ? model : "",
    effort: typeof effort === "string" ? effort : "",
    efforts: Array.isArray(efforts)
      ? efforts.filter((level): level is string => typeof level === "string")
      : ["low", "medium", "high"],
    tokens: typeof tokens === "number" ? tokens : undefined,
    window: typeof size === "number" ? size : 0,
    cost: shownCost(cost?.amount, cost?.currency),
    unpriced: Array.isArray(unpriced) ? unpriced.filter((name): name is string => typeof name === "string") : [],
    costLimit: shownCost(limit?.amount, limit?.currency),
    used: used && {
      input: Number(used.input_tokens) || 0,
      cached: Number(used.cached_tokens) || 0,
      output: Number(used.output_tokens) || 0,
    },
    parts: parts && {
      instructions: Number(parts.instructions) || 0,
      contents: Number(parts.contents) || 0,
      words: Number(parts.words) || 0,
    },
  };
}

export async function cancel(taskId: string): Promise<void> {
  await call("POST", `tasks/${encodeURIComponent(taskId)}:cancel`, {});
}

/** Run a slash command, as typed; return the id of its task. Throws an ApiError that says why it was not started. */
export function runCommand(line: string, scope: Scope): Promise<string> {
  const typed = line.trim().slice(1);
  const [name = ""] = typed.split(/\s+/, 1);
  return execute([name], typed.slice(name.length).trim(), scope);
}

/** Start a slash command by its path; return the id of its task. Throws an ApiError that says why it was not started. */
export async function execute(path: readonly string[], args: string, scope: Scope): Promise<string> {
  const settings = settingsOf(scope);
  const answer = (await call("POST", "", {
    jsonrpc: "2.0",
    id: 1,
    method: "command/execute",
    params: {
      command_path: path,
      args,
      metadata: {
        ...(scope.contextId ? { contextId: scope.contextId } : {}),
        ...(Object.keys(settings).length ? { [EXTENSION]: settings } : {}),
      },
    },
  })) as { result?: Record<string, unknown> };
  const { result } = answer;
  // Agents of other authors spell the id as A2A does.
  const id = result?.execution_id ?? result?.executionId;
  if (typeof id === "string" && id && !/FAILED_TO_START/.test(String(result?.status))) return id;
  throw typeof result?.message === "string" ? new ApiError(400, result.message) : refusalIn(400, "", answer);
}

interface Command {
  name: string;
  sub_commands?: Command[];
}

/** Tell whether the agent of a session has a slash command, such as ["chat", "fork"]. Agents of other authors have their own. */
export async function hasCommand(path: string[], contextId: string): Promise<boolean> {
  const answer = (await call("POST", "", {
    jsonrpc: "2.0",
    id: 1,
    method: "commands/get",
    params: { metadata: { contextId } },
  })) as { result?: { commands?: Command[] } };
  let found = answer.result?.commands;
  return path.every((name) => {
    const command = found?.find((each) => each.name === name);
    found = command?.sub_commands;
    return command !== undefined;
  });
}

export interface Completion {
  line: string;
  description: string;
}

export async function complete(line: string, contextId: string, workspace: string): Promise<Completion[]> {
  const found = await api<{ completions: Completion[] }>("POST", "complete", {
    line,
    ...(contextId ? { contextId } : {}),
    ...(workspace ? { workspace } : {}),
  });
  return found.completions;
}
