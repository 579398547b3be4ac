// The addresses of the page: which of its pages one shows, and its title. Pure.

import { visibleLine } from "./safe.ts";
import { type SessionAddress, decoded, sessionOf } from "./sessions.ts";
import { t } from "./words.ts";

const NAMED = ["new", "history", "devices", "tools", "settings", "files"] as const;
const OF_ONE = ["task", "diff", "written"] as const;

export type RouteName = "inbox" | "session" | (typeof NAMED)[number] | (typeof OF_ONE)[number];

export interface Route {
  name: RouteName;
  /** The id in the address: of a task, of a companion, or of a question of the inbox; empty for other pages. */
  id: string;
  /** The session in the address, and the turn of it. */
  session?: SessionAddress;
}

/** Return the path of a question below that of the page. */
export function questionPath(key: string): string {
  return `question/${encodeURIComponent(key)}`;
}

/** Return the page at an address, by its path below that of the page; the inbox for any that is not known. */
export function routeOf(path: string): Route {
  const session = sessionOf(path);
  if (session) return { name: "session", id: "", session };
  const [kind, id, ...rest] = path.split("/").map(decoded);
  if (id && !rest.length) {
    if (kind === "question") return { name: "inbox", id };
    const of = OF_ONE.find((name) => name === kind);
    if (of) return { name: of, id };
  }
  return { name: NAMED.find((name) => name === path) ?? "inbox", id: "" };
}

/** Return the title of a document: how many questions wait, the question in view or the page, and whose it is. */
export function titleOf(name: RouteName, about: string, waiting: number, asked = ""): string {
  const page = asked || pageTitle(name, visibleLine(about, 80));
  return `${waiting ? `(${waiting}) ` : ""}${page} - Isthmus`;
}

function pageTitle(name: RouteName, about: string): string {
  switch (name) {
    case "session":
    case "task":
      return about || t("session");
    case "diff":
      return about ? `${t("sessionDiff")}: ${about}` : t("sessionDiff");
    case "written":
      return t("sinceLooked");
    case "new":
      return t("newSession");
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
