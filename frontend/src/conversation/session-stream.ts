// The turns of a session as one conversation: the newest ones first, live as long as they work, older ones as they are asked for.

import type { OpenQuestion } from "./asked-questions.ts";
import { groupsOf } from "../forms/form.ts";
import { TaskFollower, eventsAgain, type StreamState } from "../server/task-stream.ts";
import { ENDED, type TaskState } from "../server/protocol.ts";
import { ApiError } from "../server/session.ts";
import { problemOf } from "../problems/problem.ts";
import { type Turn, type WholeSession, turnAt, wholeSession } from "../server/sessions.ts";
import { type CallItem, type Item, TaskFold } from "../task/task-fold.ts";

/** Turns that are shown at first, and that each look further back adds. Browsers open six connections to one host. */
const AT_ONCE = 4;
/** Characters of results that are kept of a turn that is not the newest. */
const EARLIER_CHARACTERS = 300_000;
/** Events that come within this time after an interruption were missed; the note of them stays for a while. */
const GATHER_MS = 700;
const BACK_MS = 4_000;
/** A page that is hidden for this long gives its connection up. */
const HIDDEN_MS = 30_000;
const RETRY_MS = 2_000;
/** Title of the turns by which the page of changes compares; they are shown where they were sent alone. */
const COMPARISON = "/diff";

export interface SessionReader {
  /** Called when events came. */
  came(): void;
  /** Called when the turns, the connection, or the note of what was missed changed. */
  turned(): void;
}

/** A turn that is shown. */
export interface ShownTurn {
  id: string;
  fold: TaskFold;
  follower: TaskFollower;
  /** Whether all its events are there; an older turn is drawn only then. */
  isWhole: boolean;
}

/** What is shown: a session, or one task alone. */
export type Shown = { contextId: string; turn: string | number } | { taskId: string };

export class SessionStream {
  stream: StreamState = { is: "connecting" };
  /** Number of events that came after an interruption, for a while. */
  fetched = 0;
  session: WholeSession | undefined;
  /** Moment in ms at which the connection was lost; 0 while it is not. */
  lostAt = 0;
  #place: Shown | undefined;
  #turns: readonly Turn[] = [];
  #shown: ShownTurn[] = [];
  #none = new TaskFold();
  #joined: readonly Item[] = [];
  #joinedAt = "";
  #looking: Promise<void> | undefined;
  #isBehind = false;
  /** Index of the turn back to which turns are to be shown without being asked for again. */
  #goal = Infinity;
  #leaving = new AbortController();
  /** Number of events before an interruption, until what came meanwhile was counted. */
  #missed: number | undefined;
  #countAtTick = 0;
  #backTimer = 0;
  #hiddenTimer = 0;
  #retryTimer = 0;

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

  /** Show a session from its newest turn on, back to the turn that was asked for; or one task alone. */
  begin(place: Shown): void {
    this.#leave();
    this.#leaving = new AbortController();
    this.fetched = this.lostAt = 0;
    this.#missed = undefined;
    clearTimeout(this.#backTimer);
    this.#backTimer = 0;
    this.session = undefined;
    this.#place = place;
    this.#turns = [];
    this.#goal = Infinity;
    this.stream = { is: "connecting" };
    if ("taskId" in place) this.#add(place.taskId);
    else this.refresh();
  }

  /** Note how many events there are, for what a sleep will have missed. */
  tick(): void {
    this.#countAtTick = this.fold.count;
  }

  retry(): void {
    clearTimeout(this.#retryTimer);
    if (this.#shown.length) this.#newest?.follower.retry();
    else this.refresh();
  }

  /** Ask for the turns again: one may have begun. */
  refresh(): void {
    if (!this.#place || !("contextId" in this.#place)) return;
    if (this.#looking) {
      this.#isBehind = true;
      return;
    }
    const { signal } = this.#leaving;
    const looking = this.#look(this.#place, signal).finally(() => {
      if (this.#looking !== looking) return;
      this.#looking = undefined;
      if (this.#isBehind) {
        this.#isBehind = false;
        this.refresh();
      }
    });
    this.#looking = looking;
  }

  /** Show a turn that was begun here. */
  begun(taskId: string): void {
    if (!this.#place || !("contextId" in this.#place)) return;
    this.#place = { ...this.#place, turn: taskId };
    this.refresh();
  }

  /** The turns of the session that are shown in the end, in order. */
  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** Whether there are turns before those that are shown. */
  get hasEarlier(): boolean {
    return this.#shown.length > 0 && this.#indexOf(this.#shown[0]?.id) > 0;
  }

  /** Whether turns are being read that are not drawn yet. */
  get isReading(): boolean {
    return this.#shown.some((turn) => !this.#isDrawn(turn));
  }

  /** Show all turns; those that are not there yet come one after another. */
  all(): void {
    this.#goal = 0;
    this.#goOn();
  }

  /** Show some turns before those that are shown, unless that is under way. */
  earlier(count = AT_ONCE): void {
    if (this.isReading || !this.hasEarlier) return;
    const first = this.#indexOf(this.#shown[0]?.id);
    for (let at = first - 1; at >= Math.max(0, first - count); at -= 1) this.#add(this.#turns[at]?.id ?? "", true);
    this.reader.turned();
  }

  /** The items of all shown turns, in order. */
  get items(): readonly Item[] {
    const drawn = this.#shown.filter((turn) => this.#isDrawn(turn));
    if (drawn.length <= 1) return drawn[0]?.fold.items ?? this.#none.items;
    const version = drawn.map((turn) => `${turn.id} ${turn.fold.items.length}`).join();
    if (version !== this.#joinedAt) {
      this.#joinedAt = version;
      this.#joined = drawn.flatMap((turn) => turn.fold.items);
    }
    return this.#joined;
  }

  /** The newest turn. */
  get fold(): TaskFold {
    return this.#newest?.fold ?? this.#none;
  }

  /**
   * Return the state of the newest turn, undefined while nothing is known of it; `listed` is what a list says of it.
   *
   * While the events of a turn that has ended are read again, they say what it was.
   */
  stateOf(listed: TaskState | undefined): TaskState | undefined {
    if (this.questions.length) return "input-required";
    const { name, state } = this.fold;
    const known = listed ?? this.#turns.find((turn) => turn.id === name)?.state;
    const isRead = this.#newest?.isWhole ?? false;
    return state === "submitted" || (!isRead && known && ENDED.has(known)) ? known : state;
  }

  /** The turns that are shown, in order. */
  get folds(): readonly TaskFold[] {
    return this.#shown.map((turn) => turn.fold);
  }

  /** What waits for the user in any turn, in order: each time the calls that are asked together. */
  get questions(): OpenQuestion[] {
    return this.folds.flatMap((fold) => groupsOf(fold.questions).map((calls) => ({ taskId: fold.name, calls })));
  }

  /** Return a turn that is shown, by its task. */
  foldNamed(taskId: string): TaskFold | undefined {
    return this.folds.find((fold) => fold.name === taskId);
  }

  /** Return the turn of an item. */
  foldOf(item: Item): TaskFold {
    return this.folds.find((fold) => fold.items.includes(item)) ?? this.fold;
  }

  /** Return the index of the first item of a turn; -1 while it is not shown. */
  itemAt(taskId: string): number {
    const item = this.#shown.find((turn) => turn.id === taskId && this.#isDrawn(turn))?.fold.items[0];
    return item ? this.items.indexOf(item) : -1;
  }

  /** Fetch the result of a call that was not kept. Throws an ApiError. */
  async restore(item: CallItem): Promise<void> {
    const fold = this.foldOf(item);
    fold.restore(item, await eventsAgain(fold.name, item.fetched));
  }

  get #newest(): ShownTurn | undefined {
    return this.#shown.at(-1);
  }

  #indexOf(taskId = ""): number {
    return this.#turns.findIndex((turn) => turn.id === taskId);
  }

  #isDrawn(turn: ShownTurn): boolean {
    return turn === this.#newest || turn.isWhole;
  }

  #leave(): void {
    clearTimeout(this.#hiddenTimer);
    clearTimeout(this.#retryTimer);
    this.#leaving.abort();
    this.#looking = undefined;
    this.#isBehind = false;
    for (const { follower } of this.#shown) follower.stop();
    this.#shown = [];
    this.#joinedAt = "";
  }

  async #look(place: { contextId: string; turn: string | number }, leaving: AbortSignal): Promise<void> {
    try {
      const session = await wholeSession(place.contextId);
      if (leaving.aborted) return;
      this.session = session;
      const asked = turnAt(session.tasks, place.turn);
      this.#turns = session.tasks.filter((turn, at) => turn.title !== COMPARISON || asked === at);
      if (!this.#turns.length) this.#turns = session.tasks;
      this.#showNew(place.turn);
    } catch (error) {
      if (leaving.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        if (!this.#shown.length) this.stream = { is: "failed", reason: problemOf(error) };
      } else {
        if (!this.#shown.length) this.stream = { is: "waiting", until: Date.now() + RETRY_MS, attempt: 1 };
        this.#retryTimer = window.setTimeout(() => this.refresh(), RETRY_MS);
      }
    }
    this.reader.turned();
  }

  /** Show turns that began, those that still work, and at first some back to the one that was asked for. */
  #showNew(wanted: string | number): void {
    const isFirst = !this.#shown.length;
    const known = this.#indexOf(this.#newest?.id);
    const from = turnAt(this.session?.tasks ?? [], wanted);
    const asked = this.#indexOf(this.session?.tasks[from]?.id);
    for (let at = isFirst ? this.#turns.length - 1 : known + 1; at < this.#turns.length; at += 1)
      this.#add(this.#turns[at]?.id ?? "");
    if (!isFirst) return;
    const last = this.#turns.length - 1;
    const waiting = this.#turns.findIndex((turn) => !ENDED.has(turn.state));
    this.#goal = Math.min(asked >= 0 ? asked : last, waiting >= 0 ? waiting : last);
    this.earlier();
  }

  #add(taskId: string, isBefore = false): void {
    if (!taskId || this.#shown.some((turn) => turn.id === taskId)) return;
    const fold = new TaskFold(taskId, isBefore ? EARLIER_CHARACTERS : undefined);
    const turn: ShownTurn = { id: taskId, fold, isWhole: false, follower: this.#follow(taskId, fold) };
    if (isBefore) this.#shown.unshift(turn);
    else {
      // What was the newest turn until now stays as it is drawn.
      const before = this.#newest;
      if (before) before.isWhole = true;
      this.#shown.push(turn);
      this.stream = { is: "connecting" };
    }
  }

  #follow(taskId: string, fold: TaskFold): TaskFollower {
    return new TaskFollower(
      taskId,
      (events) => {
        fold.apply(events);
        this.reader.came();
      },
      (found) => {
        const turn = this.#shown.find((shown) => shown.fold === fold);
        if (!turn) return; // it tells of its beginning before it is listed
        const isDone = found.is === "ended" || found.is === "failed";
        if (isDone || (found.is === "live" && !this.#hasEnded(taskId))) this.#become(turn);
        if (turn !== this.#newest) return;
        if (found.is === "waiting") this.lostAt ||= Date.now();
        else if (found.is !== "connecting") this.lostAt = 0;
        if (found.is === "waiting") this.#expectMissed();
        else if (found.is === "live" || found.is === "ended") this.#tellMissed();
        this.stream = found;
        this.reader.turned();
      },
    );
  }

  #hasEnded(taskId: string): boolean {
    return this.#turns.some((turn) => turn.id === taskId && ENDED.has(turn.state));
  }

  #become(turn: ShownTurn): void {
    if (turn.isWhole) return;
    turn.isWhole = true;
    this.#goOn();
    this.reader.came();
    this.reader.turned();
  }

  #goOn(): void {
    if (this.hasEarlier && this.#indexOf(this.#shown[0]?.id) > this.#goal) this.earlier();
  }

  #see = (): void => {
    clearTimeout(this.#hiddenTimer);
    if (!document.hidden) {
      for (const { follower } of this.#shown) follower.retry();
      return;
    }
    // Browsers open few connections to one host.
    this.#hiddenTimer = window.setTimeout(() => {
      if (ENDED.has(this.fold.state)) return;
      this.#expectMissed();
      for (const { follower } of this.#shown) follower.pause();
    }, HIDDEN_MS);
  };

  /** The page slept: its connections may be dead although nothing says so. */
  #wake = (): void => {
    this.#missed ??= this.#countAtTick;
    for (const { follower } of this.#shown) follower.renew();
    this.refresh();
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
