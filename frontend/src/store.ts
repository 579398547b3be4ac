// All tasks that the page knows, kept current while it is shown. What is shown is what the server said last.

import { listTasks } from "./client.ts";
import { ENDED, type TaskRow, type ToolCall } from "./protocol.ts";
import { ApiError } from "./session.ts";

const SHOWN_MS = 2_000;
const HIDDEN_MS = 20_000;
/** Changes of the same moment as the last known one are asked for again. */
const OVERLAP_MS = 2_000;

export interface Question {
  task: TaskRow;
  call: ToolCall;
}

export class TaskStore extends EventTarget {
  readonly rows = new Map<string, TaskRow>();
  isReached = true;
  isLoaded = false;
  total = 0;
  #since = 0;
  #timer = 0;
  #next = "";
  #asking: Promise<void> | undefined;
  #isStopped = false;

  start(): void {
    this.#isStopped = false;
    document.addEventListener("visibilitychange", this.refresh);
    addEventListener("online", this.refresh);
    this.refresh();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.refresh);
    removeEventListener("online", this.refresh);
  }

  /** All that waits for the user, newest first. */
  get questions(): Question[] {
    const waiting = [...this.rows.values()].filter((row) => row.state === "input-required" && !row.parent);
    waiting.sort((one, other) => other.changedAt - one.changedAt);
    return waiting.flatMap((task) => task.pending.filter((call) => call.confirmation_request).map((call) => ({ task, call })));
  }

  /** The tasks of users, changed last first. */
  get tasks(): TaskRow[] {
    return [...this.rows.values()].filter((row) => !row.parent).sort((one, other) => other.changedAt - one.changedAt);
  }

  get active(): TaskRow[] {
    return this.tasks.filter((row) => !ENDED.has(row.state));
  }

  get hasMore(): boolean {
    return this.#next !== "";
  }

  put(row: TaskRow): void {
    this.rows.set(row.id, row);
    this.#tell();
  }

  refresh = (): void => {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
      if (this.#isStopped) return;
      this.#timer = window.setTimeout(this.refresh, document.hidden ? HIDDEN_MS : SHOWN_MS);
    });
  };

  async more(): Promise<void> {
    if (!this.#next) return;
    const page = await listTasks(50, 0, this.#next);
    this.#next = page.next;
    for (const row of page.tasks) if (!this.rows.has(row.id)) this.rows.set(row.id, row);
    this.#tell();
  }

  async #ask(): Promise<void> {
    try {
      const page = await listTasks(100, this.#since ? this.#since - OVERLAP_MS : 0);
      if (!this.#since) {
        this.#next = page.next;
        this.total = page.total;
      }
      let hasChanged = !this.isLoaded || !this.isReached;
      for (const row of page.tasks) {
        const known = this.rows.get(row.id);
        this.#since = Math.max(this.#since, row.changedAt);
        if (known && known.changedAt === row.changedAt && known.state === row.state && known.pending.length === row.pending.length) continue;
        this.rows.set(row.id, row);
        hasChanged = true;
      }
      const isBack = !this.isReached;
      this.isReached = this.isLoaded = true;
      if (isBack) this.dispatchEvent(new Event("reached"));
      if (hasChanged) this.#tell();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.stop();
        this.dispatchEvent(new Event("refused"));
        return;
      }
      if (this.isReached) {
        this.isReached = false;
        this.#tell();
      }
    }
  }

  #tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}
