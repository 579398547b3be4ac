// When to draw: many events of one moment are drawn once, and more seldom if drawing takes long.

/** Drawing that takes longer than this, in ms, is done more seldom. */
const SLOW_MS = 12;

export class Drawing {
  #timer = 0;
  #drawnIn = 0;

  /** `draw` begins to draw, and returns when that is done. */
  constructor(private readonly draw: () => Promise<unknown>) {}

  /** Draw soon. */
  soon(): void {
    if (this.#timer) return;
    const draw = () => {
      this.#timer = 0;
      const begin = performance.now();
      void this.draw().then(() => {
        this.#drawnIn = performance.now() - begin;
      });
    };
    this.#timer = this.#drawnIn > SLOW_MS ? window.setTimeout(draw, 4 * this.#drawnIn) : requestAnimationFrame(draw);
  }
}
