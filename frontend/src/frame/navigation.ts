// The navigation beside the page: its places, the newest sessions, and how many questions wait.

import { html, nothing } from "lit";
import { type Icon, MARK, icon, stateMark } from "./icons.ts";
import { PAGE } from "../place.ts";
import { visibleLine } from "../text/safe.ts";
import type { Session } from "../server/session.ts";
import { type SessionFacts, type SessionState, sessionPath, taskStateOf } from "../server/sessions.ts";
import { t } from "../words.ts";
import { f } from "./words.ts";

/** Number of sessions beside the page. */
const LISTED = 12;
const RANKS: Record<SessionState, number> = { waiting: 0, working: 1, done: 2, failed: 2 };

export interface Places {
  session: Session;
  /** Name of the page that is shown. */
  page: string;
  /** Number of questions that wait. */
  waiting: number;
  hasFiles: boolean;
  sessions: readonly SessionFacts[];
  /** Whether the server is reached: otherwise what worked may have ended. */
  isReached: boolean;
  /** Session that is shown. */
  contextId: string | undefined;
}

/** Return the sessions to list: those that wait first, then those at work, each changed last first. */
export function listed(sessions: readonly SessionFacts[]): SessionFacts[] {
  return sessions.toSorted((one, other) => RANKS[one.state] - RANKS[other.state]).slice(0, LISTED);
}

/** A link to a page: its words in the navigation, shorter ones on a narrow screen, and how many questions wait there. */
interface Place {
  path: string;
  name: string;
  symbol: Icon;
  words: string;
  short?: string;
  waiting?: number;
}

export function navigation(places: Places) {
  const { session, page, waiting, hasFiles } = places;
  const link = ({ path, name, symbol, words, short = words, waiting = 0 }: Place) => {
    const label = waiting ? `${words} ${t("wait", waiting)}` : words;
    return html` <a
      href=${PAGE + path}
      class=${page === name ? "on" : ""}
      aria-current=${page === name ? "page" : nothing}
      aria-label=${label}
      title=${words}
      >${icon(symbol)}<span class="long">${words}</span
      ><span class="short">${short}</span>${waiting ? html` <span class="count">${waiting}</span>` : nothing}</a
    >`;
  };
  const inbox = { path: "", name: "inbox", symbol: "inbox", words: t("inbox"), waiting } as const;
  const tools = { path: "tools", name: "tools", symbol: "plug", words: t("toolsPage"), short: t("toolsNav") } as const;
  return html`<nav class="nav" aria-label="Isthmus">
    <div class="brand">${MARK}<span>Isthmus</span></div>
    ${link(inbox)}
    ${hasFiles || page === "files" ? link({ path: "files", name: "files", symbol: "file", words: t("files") }) : nothing}
    ${
      session.tasks
        ? html`${link({ path: "history", name: "history", symbol: "history", words: t("history") })}${link(tools)}${sessionLinks(places)}`
        : nothing
    }
    <span class="grow wide-only"></span>
    ${
      session.user || !session.tasks
        ? nothing
        : link({ path: "settings", name: "settings", symbol: "settings", words: t("settings") })
    }
    ${userLink(session, page)}
  </nav>`;
}

function userLink({ user, devices }: Session, page: string) {
  const name = visibleLine(user, 60) || f("you");
  const count = devices === undefined ? "" : devices === 1 ? f("oneDevice") : f("countDevices", devices);
  return html`<a
    href="${PAGE}devices"
    class="user ${page === "devices" ? "on" : ""}"
    aria-current=${page === "devices" ? "page" : nothing}
    aria-label="${t("devices")}: ${[name, count].filter(Boolean).join(", ")}"
    title=${t("devices")}
    ><span class="who" aria-hidden="true" data-letter=${[...name][0]?.toUpperCase() ?? ""}></span>
    <span class="long cut" dir="auto">${name}</span> <span class="short">${t("devices")}</span>
    <span class="right xs t3 num long">${count}</span></a
  >`;
}

function sessionLinks({ page, sessions, isReached, contextId: shown }: Places) {
  return html`<a
      href="${PAGE}new"
      class="narrow-only ${page === "new" ? "on" : ""}"
      aria-current=${page === "new" ? "page" : nothing}
      aria-label=${t("newSession")}
      title=${t("newSession")}
      >${icon("plus")}<span class="long">${t("newSession")}</span><span class="short">${f("newShort")}</span></a
    >
    <h2 class="wide-only">${t("sessions")}</h2>
    ${listed(sessions).map((session) => sessionLink(session, session.contextId === shown, !isReached))}
    <a
      href="${PAGE}new"
      class="task wide-only ${page === "new" ? "on" : ""}"
      aria-current=${page === "new" ? "page" : nothing}
      >${icon("plus")}<span class="grow">${t("newSession")}</span><kbd>c</kbd></a
    >`;
}

function sessionLink(session: SessionFacts, isOn: boolean, isLost: boolean) {
  const { contextId, title, agent } = session;
  const name = visibleLine(agent, 60);
  return html`<a
    href=${sessionPath(contextId)}
    class="task wide-only ${isOn ? "on" : ""}"
    aria-current=${isOn ? "page" : nothing}
    >${stateMark(taskStateOf(session), isLost)}<span class="cut" dir="auto">${visibleLine(title, 60) || contextId}</span
    >${name ? html`<span class="ag right" role="img" title=${name} aria-label=${name}>${name === "Isthmus" ? MARK : [...name][0]?.toUpperCase()}</span>` : nothing}</a
  >`;
}
