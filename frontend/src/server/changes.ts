// The stream of changes (docs/reference/workbench.md): it says when tasks, or reviews of companions, are to be asked for again.

import { readFrames } from "./event-stream.ts";
import { token } from "./session.ts";
import { PAGE } from "../place.ts";

/** Several listeners ask for a new connection at the same moment. */
const RENEWED_MS = 500;
/** The line for companions, as the server writes it. */
const REVIEWS = '{"reviews":true}';
const RETRY_MS = [500, 1000, 2000, 4000, 8000, 15000];

export interface ChangeListener {
  /** The stream is open: what happened before is to be asked for. */
  opened?(): void;
  /** A task changed. */
  changed?(): void;
  /** Something at a companion changed. The first line of a stream that tells of companions says so, too. */
  reviewsChanged?(): void;
  /** The record of a session changed: its name, its place in the archive, its draft, or what waits in it. */
  sessionChanged?(contextId: string): void;
  lost?(): void;
  refused?(): void;
}

/** Name of the lock of the one page that has the stream, and of the channel on which it tells the others. */
const SHARED = "isthmus-changes";

type Told = "ask" | "open" | "opened" | "changed" | "reviews" | "lost" | { session: string };

/**
 * Follows all changes of the user's while the page is shown. Of several pages of one browser one has the
 * stream and tells the others: browsers open only six connections to one host, for all pages together.
 */
export class ChangeStream {
  isOpen = false;
  /** Whether the open stream tells of companions. */
  hasReviews = false;
  #listeners = new Set<ChangeListener>();
  #renewed = -Infinity;
  #last = "";
  #now: AbortController | undefined;
  #wake: (() => void) | undefined;
  #isWanted = false;
  #isRunning = false;
  #waiting: AbortController | undefined;
  #channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(SHARED);

  constructor() {
    this.#channel?.addEventListener("message", (event: MessageEvent<Told>) => this.#hear(event.data));
    this.#tell("ask");
  }

  listen(listener: ChangeListener): void {
    this.#listeners.add(listener);
  }

  #each(what: Exclude<keyof ChangeListener, "sessionChanged">): void {
    for (const listener of this.#listeners) listener[what]?.();
  }

  start(): void {
    this.#isWanted = true;
    if (this.#isRunning) this.#wake?.();
    else void this.#wait();
  }

  stop(): void {
    this.#isWanted = false;
    this.#waiting?.abort();
    this.#now?.abort();
    this.#wake?.();
  }

  #tell(what: Told): void {
    this.#channel?.postMessage(what);
  }

  #hear(what: Told): void {
    if (typeof what === "object") {
      if (!this.#now) this.#tellSession(what.session);
      return;
    }
    if (what === "ask") {
      if (this.#now && this.isOpen) {
        this.#tell("open");
        if (this.hasReviews) this.#tell("reviews");
      }
      return;
    }
    if (this.#now) return;
    this.isOpen = what !== "lost";
    if (what === "lost" || what === "opened") this.hasReviews = false;
    if (what === "opened") this.#each("opened");
    else if (what === "changed") this.#each("changed");
    else if (what === "reviews") this.#tellReviews();
    else if (what === "lost") this.#each("lost");
  }

  #tellSession(contextId: string): void {
    for (const listener of this.#listeners) listener.sessionChanged?.(contextId);
  }

  #tellReviews(): void {
    this.hasReviews = true;
    this.#each("reviewsChanged");
  }

  /** Have the stream as soon as no other page has it. Locks exist only in secure contexts; elsewhere each page has one. */
  async #wait(): Promise<void> {
    this.#isRunning = true;
    const waiting = (this.#waiting = new AbortController());
    try {
      if (navigator.locks) await navigator.locks.request(SHARED, { signal: waiting.signal }, () => this.#run());
      else await this.#run();
    } catch {
      // Nobody waits any more: the page was hidden.
    }
    this.#isRunning = false;
    if (this.#isWanted && waiting.signal.aborted) void this.#wait();
  }

  /** Connect anew: the connection may be dead although nothing says so. */
  renew(): void {
    if (!this.#isWanted || performance.now() - this.#renewed < RENEWED_MS) return;
    this.#renewed = performance.now();
    if (this.#now) this.#now.abort();
    this.start();
  }

  async #run(): Promise<void> {
    let attempt = 0;
    while (this.#isWanted) {
      const status = await this.#follow(() => {
        attempt = 0;
      });
      if (this.isOpen) {
        this.isOpen = this.hasReviews = false;
        this.#tell("lost");
        if (this.#isWanted) this.#each("lost");
      }
      if (status === 401) {
        this.#isWanted = false;
        this.#each("refused");
      }
      if (status === 404) this.#isWanted = false;
      if (!this.#isWanted) break;
      const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 15000;
      attempt += 1;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  /** Read the stream once; return the status of a refusal, otherwise 0. */
  async #follow(onOpen: () => void): Promise<number> {
    const now = (this.#now = new AbortController());
    try {
      const response = await fetch(`${PAGE}api/changes`, {
        headers: {
          Authorization: `Bearer ${token()}`,
          Accept: "text/event-stream",
          ...(this.#last ? { "Last-Event-ID": this.#last } : {}),
        },
        cache: "no-store",
        credentials: "omit",
        signal: now.signal,
      });
      if (!response.ok || response.body === null) return response.status;
      onOpen();
      this.isOpen = true;
      this.#each("opened");
      this.#tell("opened");
      for await (const frames of readFrames(response.body, now)) {
        for (const { id } of frames) if (id !== undefined) this.#last = String(id);
        for (const session of frames.flatMap(({ data }) => sessionIn(data))) {
          this.#tellSession(session);
          this.#tell({ session });
        }
        const ofReviews = frames.filter(({ data }) => data === REVIEWS).length;
        if (frames.length > ofReviews) {
          this.#each("changed");
          this.#tell("changed");
        }
        if (ofReviews) {
          this.#tellReviews();
          this.#tell("reviews");
        }
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

/** Return the session that a line names, if it names one. */
function sessionIn(data: string): string[] {
  if (!data.startsWith('{"session":')) return [];
  const { session } = JSON.parse(data) as { session?: unknown };
  return typeof session === "string" ? [session] : [];
}

/** The stream of this page. */
export const changeStream = new ChangeStream();
