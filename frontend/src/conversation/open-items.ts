// The items of a conversation that are open, and fetching what is not kept of one that is opened.

import type { SessionStream } from "./session-stream.ts";
import type { CallItem } from "../task/task-fold.ts";

export class OpenItems {
  keys: ReadonlySet<string> = new Set<string>();

  /** `changed` is called when rows are to be drawn anew, `failed` when a result could not be fetched. */
  constructor(
    private readonly stream: SessionStream,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  set(key: string, isOpen: boolean): void {
    if (this.keys.has(key) === isOpen) return;
    const keys = new Set(this.keys);
    if (isOpen) keys.add(key);
    else keys.delete(key);
    this.keys = keys;
    this.changed();
  }

  async toggle(item: CallItem): Promise<void> {
    this.set(item.key, !this.keys.has(item.key));
    if (!item.fetched || !this.keys.has(item.key)) return;
    try {
      await this.stream.restore(item);
    } catch (error) {
      this.set(item.key, false);
      this.failed(error);
    }
    this.changed();
  }
}
