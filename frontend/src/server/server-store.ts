// What the page knows of the server, kept current while the page is shown: one model for questions and for reviews.

import { type ChangeListener, changeStream } from "./changes.ts";
import { Repeated } from "./repeated.ts";
import { ApiError } from "./session.ts";

/** Lines of one moment cost one request. */
const GATHER_MS = 30;
const UNREACHED_MS = 2_000;

/** Times in ms after which the server is asked without an occasion. */
export interface Pauses {
  hidden: number;
  /** With the stream, in case a line was lost. */
  told: number;
  untold: number;
}

/** Return the time in ms after which the server is asked again. */
export function pauseAfter(
  pauses: Pauses,
  { isHidden, isReached, isTold }: { isHidden: boolean; isReached: boolean; isTold: boolean },
): number {
  if (isHidden) return pauses.hidden;
  const pause = isTold ? pauses.told : pauses.untold;
  return isReached ? pause : Math.min(pause, UNREACHED_MS);
}

/**
 * Asks the server at lines of the stream of changes. Tells "change", "reached" after the server was not reached, and
 * "refused" once the token is.
 */
export abstract class ServerStore extends EventTarget {
  isReached = true;
  isLoaded = false;
  protected readonly stream = changeStream;
  #isStopped = true;
  /** What the page learned itself since the answer that is under way was asked for. */
  readonly #learned = new Set<string>();
  readonly #asking = new Repeated(
    () => this.#ask(),
    GATHER_MS,
    () =>
      this.#isStopped
        ? undefined
        : pauseAfter(this.pauses, {
            isHidden: document.hidden,
            isReached: this.isReached,
            isTold: this.isTold,
          }),
  );

  /** Begin with the lines that are occasions to ask. */
  constructor(...lines: ("opened" | "changed" | "reviewsChanged")[]) {
    super();
    const listener: ChangeListener = { lost: this.refresh, refused: () => this.#isStopped || this.#refuse() };
    for (const line of lines) listener[line] = () => this.#isStopped || this.#asking.soon();
    this.stream.listen(listener);
  }

  protected abstract get pauses(): Pauses;
  /** Whether the stream is open, and tells of this. */
  protected abstract get isTold(): boolean;
  /** Ask, and take what the server says; return whether it differs from what was known. */
  protected abstract take(): Promise<boolean>;

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    document.addEventListener("visibilitychange", this.#see);
    document.addEventListener("resume", this.renew);
    addEventListener("online", this.renew);
    addEventListener("offline", this.refresh);
    this.#see();
  }

  stop(): void {
    this.#isStopped = true;
    this.#asking.stop();
    this.stream.stop();
    document.removeEventListener("visibilitychange", this.#see);
    document.removeEventListener("resume", this.renew);
    removeEventListener("online", this.renew);
    removeEventListener("offline", this.refresh);
  }

  /** Ask now: the page was asleep or without a network, and its stream may be dead although nothing says so. */
  renew = (): void => {
    if (this.#isStopped) return;
    if (!document.hidden) this.stream.renew();
    this.refresh();
  };

  refresh = (): void => {
    if (!this.#isStopped) this.#asking.now();
  };

  /** Note what the page learned otherwise: an older answer that is under way does not undo it. */
  protected learn(id: string): void {
    this.#learned.add(id);
    this.tell();
    this.refresh();
  }

  /** Whether the page learned something newer than the answer that is being taken. */
  protected isNewer(id: string): boolean {
    return this.#learned.has(id);
  }

  protected tell(): void {
    this.dispatchEvent(new Event("change"));
  }

  /** A hidden page has no stream: browsers share few connections to one host among all pages. */
  #see = (): void => {
    if (document.hidden) this.stream.stop();
    else this.stream.start();
    this.refresh();
  };

  #refuse(): void {
    this.stop();
    this.dispatchEvent(new Event("refused"));
  }

  async #ask(): Promise<void> {
    this.#learned.clear();
    try {
      const hasChanged = await this.take();
      const isBack = !this.isReached;
      const isFirst = !this.isLoaded;
      this.isReached = this.isLoaded = true;
      if (isBack) this.dispatchEvent(new Event("reached"));
      if (hasChanged || isFirst || isBack) this.tell();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        if (!this.#isStopped) this.#refuse();
      } else if (this.isReached) {
        this.isReached = false;
        this.tell();
      }
    }
  }
}
