// Search over all sessions of the user on the server, step by step (docs/reference/workbench.md).

import { type SessionFacts, type SessionState, listSessions } from "./sessions.ts";

/** Results of one search that are found before it waits for "Search on". */
const ENOUGH = 50;

/** What is searched: words, a state or all, and the archive or what is not in it. */
export interface Sought {
  words: string;
  state: SessionState | "";
  archived: boolean;
}

/** One search. It goes on until enough is found, all is searched, or it is stopped, and tells of each step. */
export class SessionSearch {
  readonly hits: SessionFacts[] = [];
  searched = 0;
  isRunning = false;
  #next = "";
  #isStopped = false;
  #hasBegun = false;

  constructor(
    readonly sought: Sought,
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
        const step = await listSessions({ ...this.sought, after: this.#next });
        if (this.#isStopped) return;
        // A session that changed meanwhile is not found a second time, since it is newer than what is searched next.
        const known = new Set(this.hits.map((hit) => hit.contextId));
        this.hits.push(...step.sessions.filter((hit) => !known.has(hit.contextId)));
        this.searched += step.searched;
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
