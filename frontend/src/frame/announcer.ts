/** Least time in ms between two announcements: a screen reader is not interrupted by each change. */
const PAUSE_MS = 5_000;

/** Says short texts to screen readers: of several within the pause only the last one. */
export class Announcer {
  #saidAt = -Infinity;
  #timer = 0;
  #wanted = "";

  constructor(private readonly say: (text: string) => void) {}

  announce(text: string): void {
    this.#wanted = text;
    if (this.#timer) return;
    this.#timer = window.setTimeout(
      () => {
        this.#timer = 0;
        this.#saidAt = performance.now();
        this.say(this.#wanted);
      },
      Math.max(0, this.#saidAt + PAUSE_MS - performance.now()),
    );
  }
}
