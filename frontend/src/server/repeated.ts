// Requests that are made again on occasions: one at a time, and those of one moment cost one.

/**
 * Asks again and again. An occasion while an answer is under way costs one request more, however many there are: what
 * happened meanwhile may not be in that answer.
 */
export class Repeated {
  #timer = 0;
  #isSoon = false;
  #isAsking = false;
  #isBehind = false;

  /**
   * `ask` never throws; occasions within `gather` ms cost one request; `pause` returns the time in ms after which it asks
   * without an occasion, or undefined.
   */
  constructor(
    private readonly ask: () => Promise<void>,
    private readonly gather: number,
    private readonly pause: () => number | undefined = () => undefined,
  ) {}

  /** Ask in a moment. Later occasions do not put it off. */
  soon(): void {
    if (this.#isSoon) return;
    this.stop();
    this.#isSoon = true;
    this.#timer = window.setTimeout(this.now, this.gather);
  }

  readonly now = (): void => {
    this.stop();
    if (this.#isAsking) {
      this.#isBehind = true;
      return;
    }
    this.#isAsking = true;
    void this.ask().finally(() => {
      this.#isAsking = false;
      if (this.#isBehind) {
        this.#isBehind = false;
        this.soon();
      } else if (!this.#isSoon) {
        const pause = this.pause();
        if (pause !== undefined) this.#timer = window.setTimeout(this.now, pause);
      }
    });
  };

  /** Ask no more before the next occasion. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#isSoon = this.#isBehind = false;
  }
}
