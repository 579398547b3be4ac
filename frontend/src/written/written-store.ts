// What was written at one companion, as a page shows it, and decisions about it: one at a time, each for what was seen.

import { READ_MS } from "../parts/base.ts";
import { problemOf } from "../problems/problem.ts";
import { visibleLine } from "../text/safe.ts";
import { ApiError } from "../server/session.ts";
import { t } from "../words.ts";
import { Marks } from "./marks.ts";
import {
  type Listing,
  type Selection,
  type WrittenDiff,
  type WrittenTurn,
  keep,
  loadDiff,
  loadListing,
  takeBack,
  undo,
  writesOf,
} from "./written.ts";

/** Number of files of a turn that are shown at first, and with each wish for more. */
const SHOWN = 30;
/** Number of files that are asked for at once. */
const AT_ONCE = 4;

const diffKey = (turn: number, path: string): string => `${turn}\n${path}`;

/** The writes at a companion; `changed` is called after each change of what is public. */
export class WrittenStore {
  listing: Listing | undefined;
  /** Number of the turn whose files are shown. */
  chosen = 0;
  problems: string[] = [];
  hasEnded = false;
  isBusy = false;
  /** Whether the writes that are shown were on the screen long enough to be decided about. */
  isRead = false;
  limit = SHOWN;
  readonly marks = new Marks();
  #diffs = new Map<string, WrittenDiff>();
  #reading = 0;
  #isLoading = false;
  #isBehind = false;

  constructor(
    readonly companion: string,
    private readonly changed: () => void,
  ) {}

  get turns(): readonly WrittenTurn[] {
    return this.listing?.turns ?? [];
  }

  get turn(): WrittenTurn | undefined {
    return this.turns.find((turn) => turn.number === this.chosen);
  }

  diffOf(turn: number, path: string): WrittenDiff | undefined {
    return this.#diffs.get(diffKey(turn, path));
  }

  /** Nothing is shown any more. */
  close(): void {
    clearTimeout(this.#reading);
  }

  /** Ask for the list, and for the files of the chosen turn as far as they may have changed. */
  async load(): Promise<void> {
    if (this.#isLoading) {
      this.#isBehind = true;
      return;
    }
    this.#isLoading = true;
    try {
      do {
        this.#isBehind = false;
        this.#take(await loadListing(this.companion));
        await this.#loadFiles();
      } while (this.#isBehind);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.hasEnded = true;
      else if (!(error instanceof ApiError) || error.status !== 0) this.problems = [problemOf(error)];
    } finally {
      this.#isLoading = false;
      this.changed();
    }
  }

  #take(listing: Listing): void {
    if (!this.listing || writesOf(listing) !== writesOf(this.listing)) {
      this.isRead = false;
      clearTimeout(this.#reading);
      this.#reading = window.setTimeout(() => {
        this.isRead = true;
        this.changed();
      }, READ_MS);
    }
    this.listing = listing;
    this.hasEnded = false;
    const { turns } = listing;
    if (!turns.some((turn) => turn.number === this.chosen))
      this.chosen = (turns.find((turn) => turn.number > this.chosen) ?? turns.at(-1))?.number ?? 0;
    this.marks.limit(turns.flatMap((turn) => turn.files.map(({ path }) => ({ turn: turn.number, path }))));
    this.changed();
  }

  async #loadFiles(): Promise<void> {
    const { companion, listing, turn } = this;
    if (!listing || !turn) return;
    const wanted = turn.files
      .slice(0, this.limit)
      .filter(({ path }) => this.diffOf(turn.number, path)?.state !== listing.state);
    const load = async (): Promise<void> => {
      for (let file = wanted.shift(); file; file = wanted.shift()) {
        try {
          const diff = await loadDiff(companion, file.path, turn.number);
          this.#diffs.set(diffKey(turn.number, file.path), diff);
          this.marks.prune(diff);
        } catch (error) {
          // It was decided about meanwhile: the next list does not have it.
          if (!(error instanceof ApiError) || error.status !== 403) throw error;
          this.#isBehind = true;
        }
        this.changed();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, load));
  }

  /** Show another turn; return whether it is another one. */
  choose(turn: number): boolean {
    if (turn === this.chosen) return false;
    this.chosen = turn;
    this.limit = SHOWN;
    void this.load();
    return true;
  }

  showMore(): void {
    this.limit += SHOWN;
    void this.load();
  }

  keepTurn(): Promise<void> {
    return this.#decide((state) => keep(this.companion, { turn: this.chosen, state }));
  }

  undoTurn(turn: number): Promise<void> {
    return this.#decide((state) => undo(this.companion, { turn, state }));
  }

  takeBack(number: number): Promise<void> {
    return this.#decide(() => takeBack(this.companion, number));
  }

  /** Carry out what is marked; with `rest` keep everything else. */
  send(rest: boolean): Promise<void> {
    return this.#decide(async (first) => {
      const { companion, marks } = this;
      const seen = this.listing as Listing;
      const problems: string[] = [];
      let state = first;
      const each = async (
        mark: "undo" | "keep",
        act: (selection: Selection) => Promise<{ state: string; problems?: string[] }>,
      ): Promise<void> => {
        for (const selection of marks.selections(mark)) {
          const done = await act({ ...selection, state });
          state = done.state;
          problems.push(...(done.problems ?? []));
          marks.set(selection, selection.hunks, undefined);
        }
      };
      await each("undo", (selection) => undo(companion, selection));
      if (!rest) await each("keep", (selection) => keep(companion, selection));
      if (!rest || problems.length) return { problems };
      // An undo compares the files, too: what was written since was not seen, and is not kept.
      const now = await loadListing(companion);
      if (writesOf(now) !== writesOf(seen)) return { problems: [t("otherWrites")] };
      await keep(companion, { state: now.state });
      marks.clear();
      return { problems };
    });
  }

  /** Send one decision at a time; what is shown afterwards is what the companion says. */
  async #decide(act: (state: string) => Promise<{ problems?: string[] }>): Promise<void> {
    if (this.isBusy || !this.listing) return;
    this.isBusy = true;
    this.problems = [];
    this.changed();
    try {
      const { problems = [] } = await act(this.listing.state);
      this.problems = problems.map((problem) => visibleLine(problem, 500));
    } catch (error) {
      const hasChanged = error instanceof ApiError && error.status === 409;
      this.problems = [hasChanged ? t("otherWrites") : problemOf(error)];
    } finally {
      this.isBusy = false;
    }
    await this.load();
  }
}
