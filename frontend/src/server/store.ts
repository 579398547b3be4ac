// All tasks that the page knows, kept current by the stream of changes while it is shown. What is shown is what the server said last.

import { changeStream } from "./changes.ts";
import { listTasks } from "../client.ts";
import { ENDED, type TaskRow, type ToolCall } from "./protocol.ts";
import { groupsOf } from "../forms/form.ts";
import { ApiError } from "./session.ts";

/** With the stream of changes the list is asked for at its lines; this often all the same, in case one was lost. */
const SLOW_MS = 60_000;
const HIDDEN_MS = 20_000;
const WITHOUT_STREAM_MS = 5_000;
const UNREACHED_MS = 2_000;
/** Lines of one moment cost one list. */
const GATHER_MS = 30;
const PAGES = 20;
/** Changes of the same moment as the last known one are asked for again. */
const OVERLAP_MS = 2_000;

/** A question of a task: a call, or the first of several that are asked together. */
export interface Question {
  task: TaskRow;
  call: ToolCall;
  calls: readonly ToolCall[];
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
  #isBehind = false;
  #isStopped = true;
  #stream = changeStream;

  constructor() {
    super();
    this.#stream.listen({
      opened: () => this.#isStopped || this.refresh(),
      changed: () => this.#isStopped || this.#soon(),
      lost: () => this.#isStopped || this.refresh(),
      refused: () => this.#isStopped || this.#refuse(),
    });
  }

  start(): void {
    this.#isStopped = false;
    document.addEventListener("visibilitychange", this.#see);
    document.addEventListener("resume", this.renew);
    addEventListener("online", this.renew);
    addEventListener("offline", this.refresh);
    this.#see();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#stream.stop();
    document.removeEventListener("visibilitychange", this.#see);
    document.removeEventListener("resume", this.renew);
    removeEventListener("online", this.renew);
    removeEventListener("offline", this.refresh);
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

  put(row: TaskRow): void {
    this.rows.set(row.id, row);
    this.#tell();
  }

  /** Ask now: the page was asleep or without a network, and its stream may be dead although nothing says so. */
  renew = (): void => {
    if (this.#isStopped) return;
    if (!document.hidden) this.#stream.renew();
    this.refresh();
  };

  refresh = (): void => {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    if (this.#asking) {
      this.#isBehind = true;
      return;
    }
    this.#asking = this.#ask().finally(() => {
      this.#asking = undefined;
      if (this.#isStopped) return;
      if (this.#isBehind) {
        this.#isBehind = false;
        this.refresh();
        return;
      }
      const pause = document.hidden
        ? HIDDEN_MS
        : !this.isReached
          ? UNREACHED_MS
          : this.#stream.isOpen
            ? SLOW_MS
            : WITHOUT_STREAM_MS;
      this.#timer = window.setTimeout(this.refresh, pause);
    });
  };

  /** A hidden page has no stream: browsers share few connections to one host among all pages. */
  #see = (): void => {
    if (document.hidden) this.#stream.stop();
    else this.#stream.start();
    this.refresh();
  };

  #soon(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(this.refresh, GATHER_MS);
  }

  #refuse(): void {
    this.stop();
    this.dispatchEvent(new Event("refused"));
  }

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
      const rows = [...page.tasks];
      for (let next = page.next, pages = 1; this.#since && next && pages < PAGES; pages += 1) {
        const further = await listTasks(100, this.#since - OVERLAP_MS, next);
        rows.push(...further.tasks);
        next = further.next;
      }
      let hasChanged = !this.isLoaded || !this.isReached;
      for (const row of rows) {
        const known = this.rows.get(row.id);
        this.#since = Math.max(this.#since, row.changedAt);
        if (
          known &&
          known.changedAt === row.changedAt &&
          known.state === row.state &&
          known.pending.length === row.pending.length
        )
          continue;
        this.rows.set(row.id, row);
        hasChanged = true;
      }
      const isBack = !this.isReached;
      this.isReached = this.isLoaded = true;
      if (isBack) this.dispatchEvent(new Event("reached"));
      if (hasChanged) this.#tell();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.#refuse();
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
