// The tasks of a session as one conversation: the shown one live, those before it, each from its first event.

import { TaskFollower, eventsAgain, getTask, tasksOf, type StreamState } from "./client.ts";
import { ENDED, type TaskRow } from "./protocol.ts";
import type { TaskStore } from "./store.ts";
import { type CallItem, type Item, TaskFold } from "./task-fold.ts";

const EARLIER_TASKS = 30;
/** Characters of results that are kept of an earlier task. */
const EARLIER_CHARACTERS = 300_000;
/** Events that come within this time after an interruption were missed; the note of them stays for a while. */
const GATHER_MS = 700;
const BACK_MS = 4_000;
/** A page that is hidden for this long gives its connection up. */
const HIDDEN_MS = 30_000;

export interface SessionReader {
  /** Called when events came. */
  came(): void;
  /** Called when the state of the connection, or the note of what was missed, changed. */
  turned(): void;
  /** Called when the session of the task is known. */
  found(contextId: string): void;
  /** Whether the end of the task must be seen although the page is hidden. */
  readonly mustSeeEnd: boolean;
}

export class SessionStream {
  fold = new TaskFold();
  stream: StreamState = { is: "connecting" };
  /** Number of events that came after an interruption, for a while. */
  fetched = 0;
  #taskId = "";
  #follower: TaskFollower | undefined;
  #earlier: { fold: TaskFold; follower: TaskFollower }[] = [];
  #joined: readonly Item[] = [];
  #joinedAt = "";
  #leaving: AbortController | undefined;
  /** Number of events before an interruption, until what came meanwhile was counted. */
  #missed: number | undefined;
  #countAtTick = 0;
  #backTimer = 0;
  #hiddenTimer = 0;

  constructor(private readonly reader: SessionReader) {}

  /** Listen to what interrupts connections. */
  attach(): void {
    document.addEventListener("visibilitychange", this.#see);
    document.addEventListener("resume", this.#wake);
    addEventListener("slept", this.#wake);
    addEventListener("online", this.#wake);
  }

  detach(): void {
    document.removeEventListener("visibilitychange", this.#see);
    document.removeEventListener("resume", this.#wake);
    removeEventListener("slept", this.#wake);
    removeEventListener("online", this.#wake);
    this.#leave();
  }

  /** Follow a task, and show the tasks of its session before it. */
  begin(taskId: string, store: TaskStore): void {
    this.#leave();
    this.fetched = 0;
    this.#missed = undefined;
    clearTimeout(this.#backTimer);
    this.#backTimer = 0;
    this.#taskId = taskId;
    this.fold = new TaskFold(taskId);
    const leaving = (this.#leaving = new AbortController());
    this.#follower = this.#follow(taskId, this.fold);
    void this.#beginEarlier(store.rows.get(taskId), leaving.signal).catch(() => undefined);
  }

  /** Note how many events there are, for what a sleep will have missed. */
  tick(): void {
    this.#countAtTick = this.fold.count;
  }

  retry(): void {
    this.#follower?.retry();
  }

  /** The items of all shown tasks, in order. */
  get items(): readonly Item[] {
    if (!this.#earlier.length) return this.fold.items;
    const version = this.folds.map((fold) => fold.items.length).join();
    if (version !== this.#joinedAt) {
      this.#joinedAt = version;
      this.#joined = this.folds.flatMap((fold) => fold.items);
    }
    return this.#joined;
  }

  /** The shown tasks, in order. */
  get folds(): readonly TaskFold[] {
    return [...this.#earlier.map(({ fold }) => fold), this.fold];
  }

  /** Return the task of an item. */
  foldOf(item: Item): TaskFold {
    return this.folds.find((fold) => fold.items.includes(item)) ?? this.fold;
  }

  /** Fetch the result of a call that was not kept. Throws an ApiError. */
  async restore(item: CallItem): Promise<void> {
    const fold = this.foldOf(item);
    fold.restore(item, await eventsAgain(fold.name || this.#taskId, item.fetched));
  }

  #leave(): void {
    clearTimeout(this.#hiddenTimer);
    this.#leaving?.abort();
    this.#follower?.stop();
    for (const { follower } of this.#earlier) follower.stop();
    this.#earlier = [];
    this.#joinedAt = "";
  }

  async #beginEarlier(known: TaskRow | undefined, leaving: AbortSignal): Promise<void> {
    const own = known ?? (await getTask(this.#taskId));
    if (leaving.aborted) return;
    this.reader.found(own.contextId);
    const rows = (await tasksOf(own.contextId)).filter((row) => row.createdAt < own.createdAt && row.id !== own.id);
    if (leaving.aborted) return;
    this.#earlier = rows.slice(-EARLIER_TASKS).map((row) => {
      const fold = new TaskFold(row.id, EARLIER_CHARACTERS);
      return { fold, follower: this.#follow(row.id, fold, false) };
    });
  }

  #follow(taskId: string, fold: TaskFold, isOwn = true): TaskFollower {
    return new TaskFollower(
      taskId,
      (events) => {
        fold.apply(events);
        this.reader.came();
      },
      (found) => {
        if (!isOwn || fold !== this.fold) return;
        if (found.is === "waiting") this.#expectMissed();
        else if (found.is === "live" || found.is === "ended") this.#tellMissed();
        this.stream = found;
        this.reader.turned();
      },
    );
  }

  #see = (): void => {
    clearTimeout(this.#hiddenTimer);
    if (!document.hidden) {
      this.#follower?.retry();
      return;
    }
    // Browsers open few connections to one host. With messages that wait the end of the task must be seen.
    this.#hiddenTimer = window.setTimeout(() => {
      if (this.reader.mustSeeEnd || ENDED.has(this.fold.state)) return;
      this.#expectMissed();
      this.#follower?.pause();
    }, HIDDEN_MS);
  };

  /** The page slept: its connections may be dead although nothing says so. */
  #wake = (): void => {
    this.#missed ??= this.#countAtTick;
    this.#follower?.renew();
    for (const { follower } of this.#earlier) follower.renew();
    this.#tellMissed();
  };

  /** Count the events that come first after an interruption, and say how many they were. */
  #expectMissed(): void {
    this.#missed ??= this.fold.count;
    clearTimeout(this.#backTimer);
    this.#backTimer = 0;
  }

  #tellMissed(): void {
    if (this.#missed === undefined || this.#backTimer) return;
    this.#backTimer = window.setTimeout(() => {
      this.fetched = this.fold.count - (this.#missed ?? this.fold.count);
      this.#missed = undefined;
      this.reader.turned();
      this.#backTimer = window.setTimeout(() => {
        this.fetched = 0;
        this.#backTimer = 0;
        this.reader.turned();
      }, BACK_MS);
    }, GATHER_MS);
  }
}
