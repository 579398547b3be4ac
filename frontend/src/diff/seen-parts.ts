// Which stretches of parts, from 0 to 1, have been on the screen. Pure.

/** Height in px that need not have been on the screen: heights are rounded. */
const SLACK_PX = 2;

export type Stretch = [number, number];

/** Return the share of a height in px that need not have been on the screen. */
export function slackOf(height: number): number {
  return Math.min(0.02, SLACK_PX / height);
}

/** Return stretches with one more, those that touch each other joined. */
export function withStretch(stretches: readonly Stretch[], more: Stretch, slack: number): Stretch[] {
  const result: Stretch[] = [];
  for (const [from, to] of [...stretches, more].sort(([one], [other]) => one - other)) {
    const last = result.at(-1);
    if (last && from <= last[1] + slack) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}

export function isWhole(stretches: readonly Stretch[], slack: number): boolean {
  return stretches.some(([from, to]) => from <= slack && to >= 1 - slack);
}

/** Return the place from where on a part was not on the screen. */
export function firstUnseen(stretches: readonly Stretch[] | undefined): number {
  const first = stretches?.[0];
  return first && first[0] <= 0.02 ? first[1] : 0;
}

/** The parts of hunks that are to be seen, each by a number, and what of them was. */
export class SeenParts {
  #hunks: Set<number>[] = [];
  #of = new Map<number, number>();
  #stretches = new Map<number, Stretch[]>();
  #seen = 0;

  /** Add a part of a hunk; hunks count from 0. */
  add(hunk: number, part: number): void {
    while (this.#hunks.length <= hunk) this.#hunks.push(new Set());
    this.#hunks[hunk]?.add(part);
    this.#of.set(part, hunk);
  }

  /** Number of hunks, and of those that were seen as a whole. */
  get counts(): { seen: number; all: number } {
    return { seen: this.#seen, all: this.#hunks.length };
  }

  /** Whether each hunk was seen as a whole. */
  get hunks(): boolean[] {
    return this.#hunks.map((parts) => parts.size === 0);
  }

  /** Whether a part is to be seen and was not, as a whole. */
  isAwaited(part: number): boolean {
    return this.#hunks[this.#of.get(part) ?? -1]?.has(part) ?? false;
  }

  /** Note that a stretch of a part of this height in px was on the screen; return whether that completed a hunk. */
  note(part: number, from: number, to: number, height: number): boolean {
    const hunk = this.#hunks[this.#of.get(part) ?? -1];
    const slack = slackOf(height);
    if (!hunk?.has(part) || to <= from) return false;
    const stretches = withStretch(this.#stretches.get(part) ?? [], [from, to], slack);
    this.#stretches.set(part, stretches);
    if (!isWhole(stretches, slack)) return false;
    hunk.delete(part);
    this.#stretches.delete(part);
    if (hunk.size) return false;
    this.#seen += 1;
    return true;
  }

  /** Return the first part that was not seen as a whole, and the place in it from where on. */
  get next(): { part: number; from: number } | undefined {
    for (const hunk of this.#hunks)
      for (const part of hunk) return { part, from: firstUnseen(this.#stretches.get(part)) };
    return undefined;
  }
}
