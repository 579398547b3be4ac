// All tasks that the page knows, kept current by the stream of changes while it is shown. What is shown is what the server said last.

import { type TaskQuery, listTasks } from "../client.ts";
import { ENDED, type TaskRow, type ToolCall } from "./protocol.ts";
import { groupsOf } from "../forms/form.ts";
import { type Pauses, ServerStore } from "./server-store.ts";

/** Times in ms. With the stream of changes the list is asked for at its lines; this often all the same, in case one was lost. */
const PAUSES: Pauses = { hidden: 20_000, told: 60_000, untold: 5_000 };
const PAGES = 20;
/** Tasks of a page. */
const SIZE = 100;
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
    const page = await listTasks({ size: 50 }, this.#next);
    this.#next = page.next;
    for (const row of page.tasks) if (!this.rows.has(row.id)) this.rows.set(row.id, row);
    this.tell();
  }

  protected override async take(): Promise<boolean> {
    const rows = this.#since ? await allOf({ size: SIZE, since: this.#since - OVERLAP_MS }) : await this.#begin();
    let hasChanged = false;
    for (const row of rows) {
      this.#since = Math.max(this.#since, row.changedAt);
      if (this.isNewer(row.id) || isSame(this.rows.get(row.id), row)) continue;
      this.rows.set(row.id, row);
      hasChanged = true;
    }
    return hasChanged;
  }

  /** Return the tasks that changed last, and all that wait for the user, which may have changed before them. */
  async #begin(): Promise<TaskRow[]> {
    const page = await listTasks({ size: SIZE });
    const waiting = page.next ? await allOf({ size: SIZE, isWaiting: true }) : [];
    this.#next = page.next;
    this.total = page.total;
    return [...page.tasks, ...waiting];
  }
}

/** Return the tasks on the first pages of a list, which are far more than a user has. */
async function allOf(query: TaskQuery): Promise<TaskRow[]> {
  const rows: TaskRow[] = [];
  let next = "";
  for (let pages = 0; pages < PAGES; pages += 1) {
    const page = await listTasks(query, next);
    rows.push(...page.tasks);
    next = page.next;
    if (!next) break;
  }
  return rows;
}

function isSame(known: TaskRow | undefined, row: TaskRow): boolean {
  return known?.changedAt === row.changedAt && known.state === row.state && known.pending.length === row.pending.length;
}
