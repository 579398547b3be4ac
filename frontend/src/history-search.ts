// Search over all tasks of the user on the server, step by step (docs/reference/workbench.md).

import type { TaskState } from "./protocol.ts";
import { api } from "./session.ts";

/** Results of one search that are found before it waits for "Search on". */
const ENOUGH = 50;

export type StateName = "" | "waiting" | "working" | "done" | "failed";

/** A task that was found. `changed` is in seconds; `prompt` is what surrounds a word that is in the first prompt alone. */
export interface Hit {
  id: string;
  title: string;
  workspace: string;
  state: TaskState;
  changed: number;
  prompt: string;
}

interface Step {
  tasks: Hit[];
  searched: number;
  total: number;
  next: string;
}

/** One search. It goes on until enough is found, all is searched, or it is stopped, and tells of each step. */
export class HistorySearch {
  readonly hits: Hit[] = [];
  searched = 0;
  total = 0;
  isRunning = false;
  #next = "";
  #isStopped = false;
  #hasBegun = false;

  constructor(
    readonly words: string,
    readonly state: StateName,
    private readonly tell: () => void,
  ) {}

  get isDone(): boolean {
    return this.#hasBegun && this.#next === "";
  }

  /** Whether it has results or was ended; before that those of the search before it are still shown. */
  get hasResults(): boolean {
    return this.#hasBegun || !this.isRunning;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Search on. Throws an ApiError if the server was not reached or does not search. */
  async more(): Promise<void> {
    if (this.isRunning || this.isDone || this.#isStopped) return;
    this.isRunning = true;
    const enough = this.hits.length + ENOUGH;
    try {
      while (!this.#isStopped && !this.isDone && this.hits.length < enough) {
        const query = new URLSearchParams({ words: this.words, state: this.state, after: this.#next });
        const step = await api<Step>("GET", `history?${query}`);
        if (this.#isStopped) return;
        // A task that changed meanwhile is not found a second time, since it is newer than what is searched next.
        const known = new Set(this.hits.map((hit) => hit.id));
        this.hits.push(...step.tasks.filter((hit) => !known.has(hit.id)));
        this.searched += step.searched;
        this.total = step.total;
        this.#next = step.next;
        this.#hasBegun = true;
        this.tell();
      }
    } finally {
      this.isRunning = false;
      this.tell();
    }
  }
}
