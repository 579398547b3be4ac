// What the user wants done with hunks and has not sent yet. Pure.

import type { Selection, WrittenDiff, WrittenHunk } from "./written.ts";

export type Mark = "keep" | "undo";

export interface Place {
  turn: number;
  path: string;
}

const keyOf = ({ turn, path }: Place): string => `${turn}\n${path}`;

/** The marks of hunks, by turn, file and id. */
export class Marks {
  #marks = new Map<string, Map<string, Mark>>();

  of(place: Place, id: string): Mark | undefined {
    return this.#marks.get(keyOf(place))?.get(id);
  }

  set(place: Place, ids: Iterable<string>, mark: Mark | undefined): void {
    const key = keyOf(place);
    const found = this.#marks.get(key) ?? new Map<string, Mark>();
    for (const id of ids) {
      if (mark) found.set(id, mark);
      else found.delete(id);
    }
    if (found.size) this.#marks.set(key, found);
    else this.#marks.delete(key);
  }

  /** Forget the marks of hunks that are not what they were. */
  prune({ turn, path, hunks }: WrittenDiff): void {
    const known = new Set(hunks.filter((hunk) => hunk.state === "written").map((hunk) => hunk.id));
    const gone = [...(this.#marks.get(keyOf({ turn, path }))?.keys() ?? [])].filter((id) => !known.has(id));
    this.set({ turn, path }, gone, undefined);
  }

  /** Forget the marks in files that are not listed any more. */
  limit(places: Iterable<Place>): void {
    const known = new Set([...places].map(keyOf));
    for (const key of this.#marks.keys()) if (!known.has(key)) this.#marks.delete(key);
  }

  clear(): void {
    this.#marks.clear();
  }

  count(mark: Mark): number {
    return [...this.#marks.values()].reduce(
      (sum, found) => sum + [...found.values()].filter((one) => one === mark).length,
      0,
    );
  }

  /** Return how many hunks of a turn are marked. */
  countIn(turn: number): number {
    return [...this.#marks].reduce((sum, [key, found]) => sum + (key.startsWith(`${turn}\n`) ? found.size : 0), 0);
  }

  /** Return the hunks with a mark, by turn and file, newest turn first: what was built upon a hunk is undone before it. */
  selections(mark: Mark): Required<Pick<Selection, "turn" | "path" | "hunks">>[] {
    return [...this.#marks]
      .flatMap(([key, found]) => {
        const at = key.indexOf("\n");
        const hunks = [...found].filter(([, one]) => one === mark).map(([id]) => id);
        return hunks.length ? [{ turn: Number(key.slice(0, at)), path: key.slice(at + 1), hunks }] : [];
      })
      .sort((one, other) => other.turn - one.turn);
  }
}

/** Return whether a hunk is shown as it was before: it went back, or is to go back. */
export function isBack(hunk: WrittenHunk, mark: Mark | undefined): boolean {
  return hunk.state === "undone" || mark === "undo";
}
