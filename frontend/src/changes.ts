// The stream of changed tasks (docs/reference/workbench.md): it says when the list of tasks is to be asked for again.

import { readFrames } from "./event-stream.ts";
import { token } from "./session.ts";

const RETRY_MS = [500, 1000, 2000, 4000, 8000, 15000];

export interface ChangeListener {
  /** The stream is open: what happened before is to be asked for. */
  opened(): void;
  /** A task changed. */
  changed(): void;
  lost(): void;
  refused(): void;
}

/** Follows the changes of all tasks of the user while the page is shown. */
export class ChangeStream {
  isOpen = false;
  #last = "";
  #now: AbortController | undefined;
  #wake: (() => void) | undefined;
  #isWanted = false;
  #isRunning = false;

  constructor(private readonly listener: ChangeListener) {}

  start(): void {
    this.#isWanted = true;
    if (this.#isRunning) this.#wake?.();
    else void this.#run();
  }

  stop(): void {
    this.#isWanted = false;
    this.#now?.abort();
    this.#wake?.();
  }

  /** Connect anew: the connection may be dead although nothing says so. */
  renew(): void {
    if (!this.#isWanted) return;
    if (this.#now) this.#now.abort();
    this.start();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    let attempt = 0;
    while (this.#isWanted) {
      const status = await this.#follow(() => { attempt = 0; });
      if (this.isOpen) {
        this.isOpen = false;
        if (this.#isWanted) this.listener.lost();
      }
      if (status === 401) { this.#isWanted = false; this.listener.refused(); }
      if (status === 404) this.#isWanted = false;
      if (!this.#isWanted) break;
      const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 15000;
      attempt += 1;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#wake = () => { clearTimeout(timer); resolve(); };
      });
      this.#wake = undefined;
    }
    this.#isRunning = false;
  }

  /** Read the stream once; return the status of a refusal, otherwise 0. */
  async #follow(onOpen: () => void): Promise<number> {
    const now = (this.#now = new AbortController());
    try {
      const response = await fetch("/ui/api/changes", {
        headers: { Authorization: `Bearer ${token()}`, Accept: "text/event-stream", ...(this.#last ? { "Last-Event-ID": this.#last } : {}) },
        cache: "no-store", credentials: "omit", signal: now.signal,
      });
      if (!response.ok || response.body === null) return response.status;
      onOpen();
      this.isOpen = true;
      this.listener.opened();
      for await (const frames of readFrames(response.body, now)) {
        for (const { id } of frames) if (id !== undefined) this.#last = String(id);
        if (frames.length) this.listener.changed();
      }
    } catch {
      // It is opened again.
    } finally {
      now.abort();
      if (this.#now === now) this.#now = undefined;
    }
    return 0;
  }
}
