// The search for files of a companion while words are typed: the newest words count, and Enter waits for their files.

import { type FoundFile, findFiles } from "./files.ts";

/** Time in ms without typing after which words are searched for. */
const PAUSE_MS = 120;

/** Searches; `done` is called with an error, or without one once files were found. */
export class FileSearch {
  words = "";
  found: FoundFile[] = [];
  hasMore = false;
  isDone = false;
  #timer = 0;
  #isSearching = false;
  /** Whether Enter was pressed before the files were found. */
  #isEntered = false;

  constructor(private readonly done: (error?: unknown) => void) {}

  find(companion: string, words: string): void {
    this.words = words;
    this.#isSearching = true;
    this.#isEntered = false;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#ask(companion, words), this.isDone ? PAUSE_MS : 0);
  }

  async #ask(companion: string, words: string): Promise<void> {
    try {
      const { files, more } = await findFiles(companion, words);
      if (words !== this.words) return;
      this.found = files;
      this.hasMore = more;
      this.isDone = true;
      this.#isSearching = false;
      this.done();
    } catch (error) {
      this.done(error);
    }
  }

  /** Note that Enter was pressed; return whether the files are those of what was typed. */
  enter(): boolean {
    this.#isEntered = this.#isSearching;
    return !this.#isSearching;
  }

  /** Return whether Enter was pressed before the files were found. */
  wasEntered(): boolean {
    return this.#isEntered;
  }

  clear(): void {
    this.found = [];
    this.isDone = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
