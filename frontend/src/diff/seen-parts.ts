// Which parts of hunks have been on the screen. Pure.

/** Part of a line's height that need not have been on the screen: heights are rounded. */
const SLACK = 0.02;

/** The parts of hunks that are to be seen, each by a key, and the stretches of their heights (0 to 1) that were. */
export class SeenParts {
  #hunks: Map<string, number>[] = [];
  #of = new Map<string, number>();
  #stretches = new Map<string, [number, number][]>();
  #seen = 0;

  /** Add a part of a hunk; hunks count from 0. */
  add(hunk: number, key: string): void {
    while (this.#hunks.length <= hunk) this.#hunks.push(new Map());
    this.#hunks[hunk]?.set(key, 0);
    this.#of.set(key, hunk);
  }

  /** Number of hunks, and of those that were seen as a whole. */
  get counts(): { seen: number; all: number } {
    return { seen: this.#seen, all: this.#hunks.length };
  }

  /** Return the hunk of a part that is to be seen and was not, as a whole. */
  isAwaited(key: string): boolean {
    return this.#hunks[this.#of.get(key) ?? -1]?.has(key) ?? false;
  }

  /** Note that a stretch of a part was on the screen; return whether another hunk was seen by that as a whole. */
  note(key: string, from: number, to: number): boolean {
    const hunk = this.#hunks[this.#of.get(key) ?? -1];
    if (!hunk?.has(key) || to <= from) return false;
    const stretches = joined([...(this.#stretches.get(key) ?? []), [from, to]]);
    this.#stretches.set(key, stretches);
    if (!stretches.some(([low, high]) => low <= SLACK && high >= 1 - SLACK)) return false;
    hunk.delete(key);
    this.#stretches.delete(key);
    if (hunk.size) return false;
    this.#seen += 1;
    return true;
  }

  /** Return the first part that was not seen as a whole, and the place in it (0 to 1) from where on. */
  get next(): { key: string; from: number } | undefined {
    for (const hunk of this.#hunks) {
      for (const key of hunk.keys()) {
        const first = this.#stretches.get(key)?.[0];
        return { key, from: first && first[0] <= SLACK ? first[1] : 0 };
      }
    }
    return undefined;
  }
}

function joined(stretches: [number, number][]): [number, number][] {
  const result: [number, number][] = [];
  for (const [from, to] of stretches.sort(([one], [other]) => one - other)) {
    const last = result.at(-1);
    if (last && from <= last[1] + SLACK) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}
