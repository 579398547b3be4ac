// A task as it is drawn, folded from its events. The same events in any division give the same view.
// Each event costs the same, however long the task is; what is kept of calls that are over is bounded.

import { linesIn, resultOf } from "./call-facts.ts";
import type { Answered } from "../server/task-stream.ts";
import { type CallItem, KeptCalls, type Picture, shortened } from "./kept-calls.ts";
import {
  ENDED,
  type CallStatus,
  type TaskEvent,
  type TaskRow,
  type TaskState,
  type ToolCall,
  type Usage,
} from "../server/protocol.ts";
import { countLines, diffOf, type LineCounts } from "../diff/diffs.ts";
import type { GivenAnswer } from "./given-answer.ts";
import { GrowingText } from "./text-parts.ts";

export interface PromptItem {
  is: "prompt";
  key: string;
  text: string;
  at: number;
  pictures?: Picture[];
  /** Checkpoint from before the first edit that followed. */
  checkpoint?: string;
}

export type { CallItem };

export type Item =
  PromptItem | { is: "text"; key: string; text: string; prefix: string } | ThoughtItem | CallItem | EndItem;

export interface ThoughtItem {
  is: "thought";
  key: string;
  subject: string;
  description: string;
  at: number;
  /** Milliseconds since what came before it; 0 if that is not known. */
  time: number;
}

export interface EndItem {
  is: "end";
  key: string;
  state: TaskState;
  error: string;
  at: number;
  /** The last message of the user, which can be sent again; empty for a command. */
  again: string;
}

export interface Todo {
  description: string;
  status: string;
}

export interface ChangedFile extends LineCounts {
  path: string;
}

const FINAL: ReadonlySet<CallStatus> = new Set(["SUCCEEDED", "FAILED", "CANCELLED"]);

export class TaskFold {
  readonly items: Item[] = [];
  row: TaskRow | undefined;
  state: TaskState = "submitted";
  error = "";
  /** Whether the agent waits for a connection to its model. */
  isOffline = false;
  todos: Todo[] = [];
  version = 0;
  readonly usage: Usage = { input: 0, output: 0, cached: 0, thought: 0, cost: 0, unpriced: 0 };
  /** Number of the events that were applied. */
  count = 0;
  #byKey = new Map<string, Item>();
  #texts = new Map<string, { growing: GrowingText; items: Item[] }>();
  #prompt: PromptItem | undefined;
  /** Time in milliseconds of the last event that has one. */
  #lastAt = 0;
  #asking = new Map<string, CallItem>();
  #files = new Map<string, ChangedFile>();
  #kept: KeptCalls;
  #counted = new WeakSet<CallItem>();

  constructor(
    readonly name = "",
    characters?: number,
  ) {
    this.#kept = new KeptCalls(characters);
  }

  apply(events: TaskEvent[]): void {
    for (const event of events) {
      this.#apply(event);
      if ("at" in event && event.at) this.#lastAt = event.at;
    }
    this.count += events.filter(({ kind }) => kind !== "usage" && kind !== "checkpoint" && kind !== "pictures").length;
    this.version += 1;
  }

  /** Who answered which call, and how; the first answer counts. */
  readonly answers = new Map<string, Answered>();

  /** The calls that wait for the user, in order. */
  get questions(): ToolCall[] {
    return ENDED.has(this.state) ? [] : [...this.#asking.values()].map((item) => item.call);
  }

  get changedFiles(): ChangedFile[] {
    return [...this.#files.values()];
  }

  /** Put back the result of a call that was not kept. */
  restore(item: CallItem, events: TaskEvent[]): void {
    for (const event of events) {
      if (event.kind !== "call" || event.call.tool_call_id !== item.call.tool_call_id) continue;
      item.call = event.call;
      item.fetched = 0;
      this.#kept.keep(item, event.seq ?? 0);
    }
  }

  #apply(event: TaskEvent): void {
    switch (event.kind) {
      case "prompt":
        this.row = event.row;
        this.#prompt = { is: "prompt", key: `p:${event.messageId}`, text: event.text, at: event.at };
        this.#put(this.#prompt);
        return;
      case "checkpoint": {
        const edit = this.#byKey.get(`c:${event.callId}`);
        if (edit?.is === "call") edit.checkpoint = event.checkpointId;
        if (this.#prompt) this.#prompt.checkpoint ??= event.checkpointId;
        return;
      }
      case "pictures": {
        const item = this.#byKey.get(event.callId ? `c:${event.callId}` : `p:${event.messageId}`);
        if (item?.is === "call" || item?.is === "prompt")
          item.pictures = event.numbers.map((number) => ({ task: this.name, event: event.event, number }));
        return;
      }
      case "usage":
        for (const name of ["input", "output", "cached", "thought", "cost", "unpriced"] as const)
          this.usage[name] += event.usage[name];
        return;
      case "state":
        this.state = event.state;
        this.error = event.error;
        this.isOffline = event.state === "working" && event.reason === "offline";
        if (ENDED.has(event.state) && event.state !== "completed") {
          const { state, error, at } = event;
          this.#put({ is: "end", key: `e:${this.items.length}`, state, error, at, again: this.#prompt?.text ?? "" });
        }
        for (const call of event.pending) this.#call(call, event);
        return;
      case "text":
        if (event.replaces) this.#drop(event.replaces);
        this.#text(event.messageId, event.text);
        return;
      case "thought":
        this.#put({
          is: "thought",
          key: `h:${this.items.length}`,
          subject: event.subject,
          description: event.description,
          at: event.at,
          time: this.#lastAt && event.at ? Math.max(0, event.at - this.#lastAt) : 0,
        });
        return;
      case "call":
        this.#call(event.call, event);
        return;
      case "answered": {
        const known = this.#byKey.get(`c:${event.callId}`);
        if (known?.is === "call") known.answer ??= answerOf(event, known.call);
        if (!this.answers.has(event.callId)) this.answers.set(event.callId, { by: event.by, optionId: event.optionId });
        this.#asking.delete(event.callId);
      }
    }
  }

  #text(messageId: string, text: string): void {
    let known = this.#texts.get(messageId);
    if (!known) {
      const first: Item = { is: "text", key: `t:${messageId}`, text: "", prefix: "" };
      known = { growing: new GrowingText(first), items: [first] };
      this.#texts.set(messageId, known);
      this.#put(first);
    }
    const { parts, growing } = known.growing.add(text);
    known.growing = growing;
    for (const part of parts) {
      // The part itself is the item, so that it grows where it is shown.
      const item: Item = Object.assign(part, { is: "text" as const, key: `t:${messageId}:${known.items.length}` });
      known.items.push(item);
      this.#put(item);
    }
  }

  #call(call: ToolCall, event: { at: number; seq?: number }): void {
    const known = this.#byKey.get(`c:${call.tool_call_id}`);
    const isOver = FINAL.has(call.status);
    let item: CallItem;
    if (known?.is === "call") {
      item = known;
      // Progress that arrives after the end, and the question of a call that was answered meanwhile, change nothing.
      if (FINAL.has(item.call.status) && !isOver) return;
      if (call.status === "EXECUTING" && item.call.status !== "EXECUTING") item.since = event.at;
      item.call =
        call.confirmation_request || !item.call.confirmation_request
          ? call
          : { ...call, confirmation_request: item.call.confirmation_request };
      if (isOver) item.until = event.at;
    } else {
      item = {
        is: "call",
        key: `c:${call.tool_call_id}`,
        call,
        isFirst: true,
        isLast: true,
        since: event.at,
        until: isOver ? event.at : 0,
        lines: 0,
        fetched: 0,
      };
      this.#put(item);
    }
    if (call.status === "PENDING" && call.confirmation_request && !item.answer)
      this.#asking.set(call.tool_call_id, item);
    else this.#asking.delete(call.tool_call_id);
    // A server may say so only with the next answer of the model: until then the task would seem to wait.
    if (call.status === "EXECUTING" && this.state === "input-required" && !this.#asking.size) this.state = "working";
    this.#count(item);
    if (isOver) this.#countOfSubagent(item);
    this.#plan(call);
    this.#measure(item, call);
    if (isOver) this.#kept.keep(item, event.seq ?? 0);
    else if (call.live_content) item.call = { ...item.call, live_content: shortened(call.live_content, 20_000) };
  }

  /** Note the figures of a result, and how long an output is, before it is shortened. */
  #measure(item: CallItem, call: ToolCall): void {
    const result = resultOf(call);
    if (result) item.result = result;
    item.lines = linesIn(call.error?.message ?? call.output?.text ?? call.live_content ?? "");
  }

  /** Count the lines of a diff once, when it comes. */
  #count(item: CallItem): void {
    const diff = diffOf(item.call);
    const done = item.call.output?.diff;
    if (!diff) return;
    if (item.counts && !done) return;
    const counts = countLines(diff.old_content ?? "", diff.new_content);
    item.counts = counts;
    if (!done || this.#counted.has(item)) return;
    this.#counted.add(item);
    this.#changed(done.file_path, counts);
  }

  /** Count the files that a subagent has changed for a call, once it is over. */
  #countOfSubagent(item: CallItem): void {
    const files = item.call.changed_files;
    if (!Array.isArray(files) || this.#counted.has(item)) return;
    this.#counted.add(item);
    for (const { file_path, added = 0, removed = 0 } of files)
      if (typeof file_path === "string") this.#changed(file_path, { added, removed });
  }

  #changed(path: string, { added, removed }: LineCounts): void {
    const file = this.#files.get(path) ?? { path, added: 0, removed: 0 };
    this.#files.set(path, { path, added: file.added + added, removed: file.removed + removed });
  }

  #plan(call: ToolCall): void {
    const todos = call.tool_name === "write_todos" ? call.input_parameters?.todos : undefined;
    if (!Array.isArray(todos)) return;
    const text = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise);
    this.todos = todos.slice(0, 50).map((todo: Record<string, unknown> | null) => ({
      description: text(todo?.description, text(todo?.content, "")),
      status: text(todo?.status, "pending"),
    }));
  }

  #put(item: Item): void {
    if (this.#byKey.has(item.key)) return;
    this.#byKey.set(item.key, item);
    this.items.push(item);
    this.#join(this.items.length - 1);
    // Two tasks of a session may have calls of the same id.
    item.key = `${this.name}/${item.key}`;
  }

  /** Join the item at a place with the one before it if both are calls. */
  #join(at: number): void {
    const [before, item] = [this.items[at - 1], this.items[at]];
    if (before?.is === "call" && item?.is === "call") before.isLast = item.isFirst = false;
  }

  #drop(messageId: string): void {
    const known = this.#texts.get(messageId);
    if (known === undefined) return;
    this.#texts.delete(messageId);
    // It is the text under way, so that it is near the end.
    for (const item of known.items) {
      const at = this.items.lastIndexOf(item);
      this.items.splice(at, 1);
      this.#join(at);
      this.#byKey.delete(item.key.slice(this.name.length + 1));
    }
  }
}

function answerOf(event: TaskEvent & { kind: "answered" }, call: ToolCall): GivenAnswer {
  const { by, optionId, at, newContent } = event;
  const proposed = call.confirmation_request?.file_edit_details?.new_content;
  return { by, optionId, at, isEdited: newContent !== undefined && proposed !== undefined && newContent !== proposed };
}

export function linesOf(text: string): string[] {
  return text ? text.replace(/\n$/, "").split("\n") : [];
}
