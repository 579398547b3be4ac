// All tasks that the page knows, kept current by the stream of changes while it is shown. What is shown is what the server said last.

import { listTasks } from "../client.ts";
import { ENDED, type TaskRow, type ToolCall } from "./protocol.ts";
import { groupsOf } from "../forms/form.ts";
import { type Pauses, ServerStore } from "./server-store.ts";

/** Times in ms. With the stream of changes the list is asked for at its lines; this often all the same, in case one was lost. */
const PAUSES: Pauses = { hidden: 20_000, told: 60_000, untold: 5_000 };
const PAGES = 20;
/** Changes of the same moment as the last known one are asked for again. */
const OVERLAP_MS = 2_000;

/** A question of a task: a call, or the first of several that are asked together. */
export interface Question {
  task: TaskRow;
  call: ToolCall;
  calls: readonly ToolCall[];
}

export class TaskStore extends ServerStore {
  readonly rows = new Map<string, TaskRow>();
  total = 0;
  #since = 0;
  #next = "";

  constructor() {
    super("opened", "changed");
  }

  protected override get pauses(): Pauses {
    return PAUSES;
  }

  protected override get isTold(): boolean {
    return this.stream.isOpen;
  }

  /** All that waits for the user, newest first. */
  get questions(): Question[] {
    const waiting = [...this.rows.values()].filter((row) => row.state === "input-required" && !row.parent);
    waiting.sort((one, other) => other.changedAt - one.changedAt);
    return waiting.flatMap((task) => {
      const open = task.pending.filter((call) => call.confirmation_request);
      return groupsOf(open).flatMap((calls) => (calls[0] ? [{ task, call: calls[0], calls }] : []));
    });
  }

  /** The tasks of users, changed last first. */
  get tasks(): TaskRow[] {
    return [...this.rows.values()].filter((row) => !row.parent).sort((one, other) => other.changedAt - one.changedAt);
  }

  /** The tasks that a task has begun for parts of its work, in their order. */
  childrenOf(taskId: string): TaskRow[] {
    return [...this.rows.values()]
      .filter((row) => row.parent === taskId)
      .sort((one, other) => one.createdAt - other.createdAt);
  }

  get active(): TaskRow[] {
    return this.tasks.filter((row) => !ENDED.has(row.state));
  }

  get hasMore(): boolean {
    return this.#next !== "";
  }

  /** Take a row that the server gave otherwise. */
  put(row: TaskRow): void {
    this.rows.set(row.id, row);
    this.learn(row.id);
  }

  async more(): Promise<void> {
    if (!this.#next) return;
    const page = await listTasks(50, 0, this.#next);
    this.#next = page.next;
    for (const row of page.tasks) if (!this.rows.has(row.id)) this.rows.set(row.id, row);
    this.tell();
  }

  protected override async take(): Promise<boolean> {
    const page = await listTasks(100, this.#since ? this.#since - OVERLAP_MS : 0);
    if (!this.#since) {
      this.#next = page.next;
      this.total = page.total;
    }
    const rows = [...page.tasks];
    for (let next = page.next, pages = 1; this.#since && next && pages < PAGES; pages += 1) {
      const further = await listTasks(100, this.#since - OVERLAP_MS, next);
      rows.push(...further.tasks);
      next = further.next;
    }
    let hasChanged = false;
    for (const row of rows) {
      this.#since = Math.max(this.#since, row.changedAt);
      if (this.isNewer(row.id) || isSame(this.rows.get(row.id), row)) continue;
      this.rows.set(row.id, row);
      hasChanged = true;
    }
    return hasChanged;
  }
}

function isSame(known: TaskRow | undefined, row: TaskRow): boolean {
  return known?.changedAt === row.changedAt && known.state === row.state && known.pending.length === row.pending.length;
}
