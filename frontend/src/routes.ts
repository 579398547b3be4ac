// The addresses of the page: which of its pages one shows, and its title. Pure.

import { visibleLine } from "./text/safe.ts";
import { type SessionAddress, type SessionState, decoded, sessionOf } from "./server/sessions.ts";
import { t } from "./words.ts";

const NAMED = ["new", "history", "devices", "tools", "settings", "files"] as const;
const OF_ONE = ["task", "diff", "written"] as const;
/** Maximum number of characters of each part of a title. */
const PART = 80;

export type RouteName = "inbox" | "session" | "unknown" | (typeof NAMED)[number] | (typeof OF_ONE)[number];

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

/** Return the page at an address, by its path below that of the page. */
export function routeOf(path: string): Route {
  const session = sessionOf(path);
  if (session) return { name: "session", id: "", session };
  const [kind, id, ...rest] = path.split("/").map(decoded);
  if (id && !rest.length) {
    if (kind === "question") return { name: "inbox", id };
    const of = OF_ONE.find((name) => name === kind);
    if (of) return { name: of, id };
  }
  const name = path.replace(/\/$/, "");
  return { name: name ? (NAMED.find((one) => one === name) ?? "unknown") : "inbox", id: "" };
}

/** State by which sessions are sought in the history; "" for every state. */
export type SoughtState = SessionState | "" | "archived";

export const SOUGHT_STATES: readonly SoughtState[] = ["", "waiting", "working", "done", "failed", "archived"];
/** Maximum number of characters that are sought. */
export const LONGEST_SOUGHT = 200;

/** What is sought in the history. */
export interface Sought {
  words: string;
  state: SoughtState;
}

/** Return what the query of an address of the history seeks; what no page of ours writes seeks nothing. */
export function soughtIn(query: string): Sought {
  const found = new URLSearchParams(query);
  const state = SOUGHT_STATES.find((one) => one === found.get("state")) ?? "";
  return { words: (found.get("words") ?? "").slice(0, LONGEST_SOUGHT), state };
}

/** Return the query of an address of the history, with its "?"; empty if nothing is sought. */
export function queryOf({ words, state }: Sought): string {
  const query = new URLSearchParams();
  if (words.trim()) query.set("words", words);
  if (state) query.set("state", state);
  return query.size ? `?${query.toString()}` : "";
}

/** What a title is made of. */
export interface Titled {
  /** Title of the session that is shown, or of that of the question in view. */
  about: string;
  /** Number of questions that wait. */
  waiting: number;
  /** The question in view. */
  asked?: string;
}

/** Return the title of a document: the question in view, the page or session, how many questions wait, and whose it is. */
export function titleOf(name: RouteName, { about, waiting, asked = "" }: Titled): string {
  const page = pageTitle(name, visibleLine(about, PART), asked !== "");
  const parts = [visibleLine(asked, PART), page].filter(Boolean).join(" \u00b7 ");
  return `${parts}${waiting ? ` (${waiting})` : ""} \u00b7 Isthmus`;
}

function pageTitle(name: RouteName, about: string, isAsked: boolean): string {
  switch (name) {
    case "session":
    case "task":
      return about || t("session");
    case "diff":
      return about ? `${t("sessionDiff")} \u00b7 ${about}` : t("sessionDiff");
    case "written":
      return t("sinceLooked");
    case "new":
      return t("newSession");
    case "tools":
      return t("toolsPage");
    case "inbox":
      return isAsked && about ? about : t("inbox");
    case "unknown":
      return t("noPage");
    case "history":
    case "devices":
    case "settings":
    case "files":
      return t(name);
  }
}
