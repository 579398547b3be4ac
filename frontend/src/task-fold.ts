// A task as it is drawn, folded from its events. The same events in any division give the same view.

import { ENDED, type CallStatus, type TaskEvent, type TaskRow, type TaskState, type ToolCall } from "./protocol.ts";

export type Item =
  | { is: "prompt"; key: string; text: string; at: number }
  | { is: "text"; key: string; text: string }
  | { is: "thought"; key: string; subject: string; description: string; at: number }
  | { is: "call"; key: string; call: ToolCall; answeredBy: string; since: number; until: number }
  | { is: "end"; key: string; state: TaskState; error: string };

export interface Todo {
  description: string;
  status: string;
}

export class TaskFold {
  readonly items: Item[] = [];
  row: TaskRow | undefined;
  state: TaskState = "submitted";
  error = "";
  todos: Todo[] = [];
  version = 0;
  #byKey = new Map<string, Item>();

  constructor(private readonly name = "") {}

  apply(events: TaskEvent[]): void {
    for (const event of events) this.#apply(event);
    this.version += 1;
  }

  /** The calls that wait for the user, in order. */
  get questions(): ToolCall[] {
    if (ENDED.has(this.state)) return [];
    return this.items.flatMap((item) =>
      item.is === "call" && item.call.status === "PENDING" && item.call.confirmation_request && !item.answeredBy ? [item.call] : [],
    );
  }

  get changedFiles(): { path: string; added: number; removed: number }[] {
    const found = new Map<string, { path: string; added: number; removed: number }>();
    for (const item of this.items) {
      if (item.is !== "call" || !item.call.output?.diff) continue;
      const diff = item.call.output.diff, counted = countLines(diff.old_content ?? "", diff.new_content);
      const known = found.get(diff.file_path) ?? { path: diff.file_path, added: 0, removed: 0 };
      found.set(diff.file_path, { path: diff.file_path, added: known.added + counted.added, removed: known.removed + counted.removed });
    }
    return [...found.values()];
  }

  #apply(event: TaskEvent): void {
    switch (event.kind) {
      case "prompt":
        this.row = event.row;
        this.#put({ is: "prompt", key: `p:${event.messageId}`, text: event.text, at: event.at });
        return;
      case "state":
        this.state = event.state;
        this.error = event.error;
        if (ENDED.has(event.state) && event.state !== "completed") {
          this.#put({ is: "end", key: `e:${this.items.length}`, state: event.state, error: event.error });
        }
        for (const call of event.pending) this.#call(call, event.at);
        return;
      case "text": {
        if (event.replaces) this.#drop(`t:${event.replaces}`);
        const known = this.#byKey.get(`t:${event.messageId}`);
        if (known?.is === "text") known.text += event.text;
        else this.#put({ is: "text", key: `t:${event.messageId}`, text: event.text });
        return;
      }
      case "thought":
        this.#put({ is: "thought", key: `h:${this.items.length}`, subject: event.subject, description: event.description, at: event.at });
        return;
      case "call":
        this.#call(event.call, event.at);
        return;
      case "answered": {
        const known = this.#byKey.get(`c:${event.callId}`);
        if (known?.is === "call" && !known.answeredBy) known.answeredBy = event.by || "another client";
      }
    }
  }

  #call(call: ToolCall, at: number): void {
    const known = this.#byKey.get(`c:${call.tool_call_id}`);
    const isFinal: CallStatus[] = ["SUCCEEDED", "FAILED", "CANCELLED"];
    if (known?.is === "call") {
      // Progress that arrives after the end, and the question of a call that was answered meanwhile, change nothing.
      if (isFinal.includes(known.call.status) && !isFinal.includes(call.status)) return;
      if (call.status === "EXECUTING" && known.call.status !== "EXECUTING") known.since = at;
      known.call = { ...call, ...(call.confirmation_request ? {} : keptRequest(known.call)) };
      if (isFinal.includes(call.status)) known.until = at;
    } else {
      this.#put({ is: "call", key: `c:${call.tool_call_id}`, call, answeredBy: "", since: at, until: isFinal.includes(call.status) ? at : 0 });
    }
    const todos = call.tool_name === "write_todos" ? call.input_parameters?.todos : undefined;
    if (Array.isArray(todos)) {
      this.todos = todos.slice(0, 50).map((todo: Record<string, unknown>) => ({
        description: String(todo?.description ?? todo?.content ?? ""), status: String(todo?.status ?? "pending"),
      }));
    }
  }

  #put(item: Item): void {
    if (this.#byKey.has(item.key)) return;
    this.#byKey.set(item.key, item);
    this.items.push(item);
    // Two tasks of a session may have calls of the same id.
    item.key = `${this.name}/${item.key}`;
  }

  #drop(key: string): void {
    const item = this.#byKey.get(key);
    if (item === undefined) return;
    this.#byKey.delete(key);
    this.items.splice(this.items.indexOf(item), 1);
  }
}

function keptRequest(call: ToolCall): Partial<ToolCall> {
  return call.confirmation_request ? { confirmation_request: call.confirmation_request } : {};
}

export function linesOf(text: string): string[] {
  return text ? text.replace(/\n$/, "").split("\n") : [];
}

/** Count the lines that differ, without their order: a quick figure, not a diff. */
export function countLines(before: string, after: string): { added: number; removed: number } {
  const counts = new Map<string, number>();
  for (const line of linesOf(before)) counts.set(line, (counts.get(line) ?? 0) + 1);
  let added = 0;
  for (const line of linesOf(after)) {
    const left = counts.get(line) ?? 0;
    if (left > 0) counts.set(line, left - 1);
    else added += 1;
  }
  let removed = 0;
  for (const left of counts.values()) removed += left;
  return { added, removed };
}
