// What the palette offers: pages, sessions, and what the keys of the page shown would do. Pure.

import type { Icon } from "./icons.ts";
import { PAGE } from "../place.ts";
import { visibleLine } from "../text/safe.ts";
import { type SessionFacts, sessionPath } from "../server/sessions.ts";
import { t } from "../words.ts";
import { type Has, type KeyPlace, keysWith, shownKeys } from "./key-table.ts";

/** Something to go to or to do; `key` is pressed for the page if there is no `path`. */
export interface Action {
  name: string;
  hint: string;
  symbol: Icon;
  path?: string;
  key?: string;
  shown?: string;
  session?: SessionFacts;
}

/** Return the pages that can be gone to. */
export function pageActions(has: Has, isOwner: boolean, written: string): Action[] {
  const pages: [string, string, Icon, boolean, string?][] = [
    ["", t("inbox"), "inbox", true, "g i"],
    ["new", t("newSession"), "plus", has.tasks, "c"],
    ["history", t("history"), "history", has.tasks, "g h"],
    ["files", t("files"), "file", has.files, "g f"],
    [`written/${encodeURIComponent(written)}`, t("sinceLooked"), "edit", has.written && written !== "", "g w"],
    ["tools", t("toolsPage"), "plug", has.tasks, "g s"],
    ["settings", t("settings"), "settings", has.tasks && isOwner],
    ["devices", t("devices"), "device", true],
  ];
  return pages
    .filter(([, , , isThere]) => isThere)
    .map(([path, name, symbol, , shown = ""]) => ({ name, hint: "", symbol, path: PAGE + path, shown }));
}

/** Return what single keys would do at these places. Answers are given by the keys and buttons of their cards alone. */
export function keyActions(places: readonly KeyPlace[], has: Has): Action[] {
  return keysWith(has)
    .filter((row) => places.includes(row.at) && row.keys.length === 1 && !row.isAnswer)
    .flatMap((row) =>
      row.keys.map((key) => ({
        name: capitalized(t(row.word)),
        hint: "",
        symbol: "fold" as const,
        key,
        shown: shownKeys(row, ""),
      })),
    );
}

export function sessionAction(session: SessionFacts): Action {
  const { contextId, title, workspace } = session;
  const name = visibleLine(title, 100) || contextId;
  return { name, hint: visibleLine(workspace, 100), symbol: "comment", path: sessionPath(contextId), session };
}

/** Return the actions whose names or hints have all words that were typed; names that begin with them come first. */
export function found(actions: readonly Action[], typed: string): Action[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const first = words.join(" ");
  return actions
    .filter(({ name, hint }) => words.every((word) => `${name} ${hint}`.toLowerCase().includes(word)))
    .toSorted((one, other) => Number(begins(other, first)) - Number(begins(one, first)));
}

function begins({ name }: Action, typed: string): boolean {
  return typed !== "" && name.toLowerCase().startsWith(typed);
}

function capitalized(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
