// Search within a session: in the texts of its items, drawn or not.

import type { Item } from "../task/task-fold.ts";
import { rowFactsOf } from "../task/call-facts.ts";

/** Return the text of an item in which words are found: what it shows, open or not. */
export function textOfItem(item: Item, workspace: string): string {
  switch (item.is) {
    case "prompt":
      return item.text;
    case "text":
      return item.text;
    case "thought":
      return `${item.subject}\n${item.description}`;
    case "end":
      return item.error;
    case "call": {
      const { call } = item;
      const { verb, object, rest } = rowFactsOf(call, workspace);
      return [
        verb,
        object,
        rest,
        call.live_content ?? "",
        call.output?.text ?? "",
        call.output?.diff?.new_content ?? "",
        call.error?.message ?? "",
      ].join("\n");
    }
  }
}

/** Return the indexes of the items that have a text, in any case, in order; none for an empty text. */
export function findItems(items: readonly Item[], text: string, workspace = ""): number[] {
  const sought = text.trim().toLowerCase();
  if (!sought) return [];
  const found: number[] = [];
  for (const [at, item] of items.entries())
    if (textOfItem(item, workspace).toLowerCase().includes(sought)) found.push(at);
  return found;
}

/** Return the place among the found items that is next to one item, on its side in a direction; it goes round. */
export function nextFound(found: readonly number[], at: number, by: 1 | -1): number {
  if (!found.length) return -1;
  const next = by > 0 ? found.findIndex((index) => index > at) : found.findLastIndex((index) => index < at);
  return next >= 0 ? next : by > 0 ? 0 : found.length - 1;
}
