// The message of the user that keys mean: the one with the focus, otherwise the last one.

import type { ItemList } from "../parts/rows/item-list.ts";
import type { Rows } from "../parts/rows/task-rows.ts";
import { isCommand } from "./sending.ts";
import type { Item } from "../task/task-fold.ts";

export class ChosenPrompt {
  /** Key of the item that gets the focus once it is drawn. */
  #revealing = "";

  constructor(private readonly items: () => readonly Item[]) {}

  /** Go to the next or the previous message of the user in a list. */
  step(by: 1 | -1, list: ItemList | null | undefined): void {
    const items = this.items();
    const hasFocus = this.#revealing || document.activeElement?.closest(".it");
    let at = hasFocus ? this.#at(items) + by : by > 0 ? 0 : items.length - 1;
    while (items[at] && items[at]?.is !== "prompt") at += by;
    this.#revealing = items[at]?.key ?? "";
    if (!this.#revealing) return;
    void list?.reveal(at).finally(() => {
      this.#revealing = "";
    });
  }

  /** Rewind to the chosen message by `z`, or branch from it by `b`. */
  press(key: string, rows: Rows): void {
    const items = this.items();
    let at = this.#at(items);
    while (at > 0 && items[at]?.is !== "prompt") at -= 1;
    const item = items[at];
    if (item?.is !== "prompt" || !rows.rests) return;
    if (key === "z" && item.checkpoint) rows.rewind(item);
    else if (key === "b" && rows.canBranch && !isCommand(item.text)) rows.branch(item);
  }

  #at(items: readonly Item[]): number {
    const focused = document.activeElement?.closest<HTMLElement & { key: string }>(".it");
    const key = this.#revealing || focused?.key;
    const at = key ? items.findIndex((item) => item.key === key) : -1;
    return at >= 0 ? at : items.findLastIndex((item) => item.is === "prompt");
  }
}
