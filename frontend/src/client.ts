// A2A 1.0 over HTTP: lists, prompts, answers, and streams that go on where they broke off.

import { ENDED, EXTENSION, eventsOf, rowOf, type TaskEvent, type TaskRow } from "./server/protocol.ts";
import { readFrames } from "./server/event-stream.ts";
import { shownCost } from "./task/money.ts";
import { ApiError, api, answererName, token } from "./server/session.ts";
import { SERVER } from "./place.ts";

const RETRY_MS = [500, 1000, 2000, 4000, 8000, 15000];
/** An answer that ended a question is stored already; without it nothing may come for long. */
const ANSWER_MS = 10_000;

function headers(more: Record<string, string> = {}): Record<string, string> {
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
  const value = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
  if (!response.ok) throw new ApiError(response.status, value.error?.message ?? response.statusText);
  return value;
}

/** Return the tasks that changed last, newest first; with `since` (ms) only those changed at or after it. */
export async function listTasks(
  size: number,
  since = 0,
  pageToken = "",
): Promise<{ tasks: TaskRow[]; next: string; total: number }> {
  const query = new URLSearchParams({ pageSize: String(size) });
  if (since) query.set("statusTimestampAfter", new Date(since).toISOString());
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
export async function runCommand(line: string, scope: Scope): Promise<string> {
  const [name = "", ...rest] = line.trim().slice(1).split(/\s+/);
  const args = rest.length
    ? line
        .trim()
        .slice(1 + name.length)
        .trim()
    : "";
  const settings = settingsOf(scope);
  const answer = (await call("POST", "", {
    jsonrpc: "2.0",
    id: 1,
    method: "command/execute",
    params: {
      command_path: [name],
      args,
      metadata: {
        ...(scope.contextId ? { contextId: scope.contextId } : {}),
        ...(Object.keys(settings).length ? { [EXTENSION]: settings } : {}),
      },
    },
  })) as { result?: { execution_id?: string; status?: string; message?: string }; error?: { message?: string } };
  const taskId = answer.result?.execution_id;
  if (!taskId || answer.result?.status === "FAILED_TO_START")
    throw new ApiError(400, answer.result?.message || answer.error?.message || line);
  return taskId;
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

export type StreamState =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "waiting"; until: number; attempt: number }
  | { is: "ended" }
  | { is: "failed"; reason: string };

/** One followed task: all its events from the first one, each once, over every loss of the connection. */
export class TaskFollower {
  #last = 0;
  #stopped = new AbortController();
  #now: AbortController | undefined;
  #wake: (() => void) | undefined;
  #isRenewed = false;
  #isPaused = false;

  constructor(
    private readonly taskId: string,
    private readonly onEvents: (events: TaskEvent[]) => void,
    private readonly onState: (state: StreamState) => void,
  ) {
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    this.#now?.abort();
    this.#wake?.();
  }

  /** Try again now, e.g. because the page is shown again or the network is back. */
  retry(): void {
    this.#isPaused = false;
    this.#wake?.();
  }

  /** Give the connection up until `renew`: a page that is not seen needs none. */
  pause(): void {
    this.#isPaused = true;
    this.#now?.abort();
  }

  /** Connect anew from the last event: after a sleep the connection may be dead although nothing says so. */
  renew(): void {
    this.#isRenewed = true;
    this.#isPaused = false;
    this.#now?.abort();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    let attempt = 0;
    while (!this.#stopped.signal.aborted) {
      this.onState({ is: "connecting" });
      this.#isRenewed = false;
      try {
        const before = this.#last;
        if (await this.#follow()) {
          this.onState({ is: "ended" });
          return;
        }
        if (this.#last > before) attempt = 0;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          this.onState({ is: "failed", reason: error.message });
          return;
        }
      }
      if (this.#stopped.signal.aborted) return;
      if (this.#isPaused) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
        continue;
      }
      if (this.#isRenewed) {
        this.#isRenewed = false;
        attempt = 0;
        continue;
      }
      const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 15000;
      attempt += 1;
      this.onState({ is: "waiting", until: Date.now() + pause, attempt });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  /** Read the stream once; return whether the task has ended. */
  async #follow(): Promise<boolean> {
    const now = (this.#now = new AbortController());
    try {
      const response = await subscribe(this.taskId, this.#last, now.signal);
      this.onState({ is: "live" });
      let ended = false;
      for await (const frames of readFrames(response, now)) {
        const found: TaskEvent[] = [];
        for (const { id, data } of frames) {
          if (id !== undefined && id <= this.#last && id !== 0) continue;
          const events = eventsOf(JSON.parse(data));
          for (const event of events) found.push(id === undefined ? event : { ...event, seq: id });
          if (id !== undefined) this.#last = id;
          const last = events.at(-1);
          if (last?.kind === "state") ended = ENDED.has(last.state);
        }
        if (found.length) this.onEvents(found);
      }
      return ended;
    } finally {
      now.abort();
    }
  }
}

async function subscribe(taskId: string, after: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch(`${SERVER}tasks/${encodeURIComponent(taskId)}:subscribe`, {
    headers: headers({
      Accept: "text/event-stream",
      "Last-Event-ID": String(after),
      "X-Isthmus-Prompts": "1",
    }),
    cache: "no-store",
    credentials: "omit",
    signal,
  });
  if (!response.ok || response.body === null) throw new ApiError(response.status, await reasonOf(response));
  return response.body;
}

/** Return the events of one number again, whose contents the page did not keep. */
export async function eventsAgain(taskId: string, seq: number): Promise<TaskEvent[]> {
  const now = new AbortController();
  const deadline = setTimeout(() => now.abort(), 30_000);
  try {
    for await (const frames of readFrames(await subscribe(taskId, seq - 1, now.signal), now)) {
      const found = frames.find((frame) => frame.id === seq);
      if (found) return eventsOf(JSON.parse(found.data));
    }
    return [];
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(0, "");
  } finally {
    clearTimeout(deadline);
    now.abort();
  }
}

export interface Answered {
  by: string;
  optionId: string;
}

/** Return who answered a question that waited at the event `seq`, and how; undefined if that is not known, e.g. of a task that was stopped. */
export async function answererOf(taskId: string, seq: number, callId: string): Promise<Answered | undefined> {
  const now = new AbortController();
  const deadline = setTimeout(() => now.abort(), ANSWER_MS);
  try {
    for await (const frames of readFrames(await subscribe(taskId, seq, now.signal), now)) {
      for (const event of frames.flatMap((frame) => eventsOf(JSON.parse(frame.data)))) {
        if (event.kind === "answered" && event.callId === callId) return { by: event.by, optionId: event.optionId };
        if (event.kind === "state" && ENDED.has(event.state)) return undefined;
      }
    }
  } catch {
    // The list of the inbox is whole without it.
  } finally {
    clearTimeout(deadline);
    now.abort();
  }
  return undefined;
}

async function reasonOf(response: Response): Promise<string> {
  const value = (await response.json().catch(() => ({}))) as { error?: { message?: string } };
  return value.error?.message ?? response.statusText;
}
