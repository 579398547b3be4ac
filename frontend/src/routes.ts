// The addresses of the page: which of its pages one shows, and its title. Pure.

import { visibleLine } from "./safe.ts";
import { t } from "./words.ts";

const NAMED = ["new", "history", "devices", "tools", "settings", "files"] as const;
const OF_ONE = ["task", "diff", "written"] as const;

export type RouteName = "inbox" | (typeof NAMED)[number] | (typeof OF_ONE)[number];

export interface Route {
  name: RouteName;
  /** The id in the address: of a task, or of a companion; empty for other pages. */
  id: string;
}

/** Return the page at an address, by its path below that of the page; the inbox for any that is not known. */
export function routeOf(path: string): Route {
  const of = OF_ONE.find((name) => path.startsWith(`${name}/`));
  const id = of ? path.slice(of.length + 1) : "";
  if (of && /^[^/]+$/.test(id)) return { name: of, id };
  return { name: NAMED.find((name) => name === path) ?? "inbox", id: "" };
}

/** Return the title of a document: how many questions wait, the page with what it is about, and whose it is. */
export function titleOf(name: RouteName, about: string, waiting: number): string {
  const page = pageTitle(name, visibleLine(about, 80));
  return `${waiting ? `(${waiting}) ` : ""}${page} - Isthmus`;
}

function pageTitle(name: RouteName, about: string): string {
  switch (name) {
    case "task":
      return about || t("task");
    case "diff":
      return about ? `${t("sessionDiff")}: ${about}` : t("sessionDiff");
    case "written":
      return t("sinceLooked");
    case "new":
      return t("newTask");
    case "tools":
      return t("toolsPage");
    case "inbox":
    case "history":
    case "devices":
    case "settings":
    case "files":
      return t(name);
  }
}
