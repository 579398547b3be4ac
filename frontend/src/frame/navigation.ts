// The navigation beside the page: its places, the newest sessions, and how many questions wait.

import { html, nothing } from "lit";
import { MARK, icon, stateMark } from "../icons.ts";
import { PAGE } from "../place.ts";
import { visibleLine } from "../safe.ts";
import type { Session } from "../session.ts";
import { type SessionFacts, sessionPath, taskStateOf } from "../sessions.ts";
import { t } from "../words.ts";

/** Number of sessions beside the page. */
const LISTED = 12;

export interface Places {
  session: Session;
  /** Name of the page that is shown. */
  page: string;
  /** Number of questions that wait. */
  waiting: number;
  hasFiles: boolean;
  sessions: readonly SessionFacts[];
  /** Session that is shown. */
  contextId: string | undefined;
}

export function navigation(places: Places) {
  const { session, page, waiting, hasFiles } = places;
  const link = (path: string, name: string, words: string, symbol: Parameters<typeof icon>[0], badge = 0) =>
    html` <a href=${path} class=${page === name ? "on" : ""} aria-current=${page === name ? "page" : nothing}
      >${icon(symbol)}<span>${words}</span>${badge ? html`<span class="count" aria-label=${t("wait", badge)}>${badge}</span>` : nothing}</a
    >`;
  return html`<nav class="nav" aria-label="Isthmus">
    <div class="brand">${MARK}<span>Isthmus</span></div>
    ${link(PAGE, "inbox", t("inbox"), "inbox", waiting)}
    ${hasFiles || page === "files" ? link(`${PAGE}files`, "files", t("files"), "file") : nothing}
    ${session.tasks ? html`${link(`${PAGE}history`, "history", t("history"), "history")}${sessionLinks(places)}` : nothing}
    <span class="grow wide-only"></span>
    ${session.tasks ? link(`${PAGE}tools`, "tools", t("toolsNav"), "plug") : nothing}
    ${session.user || !session.tasks ? nothing : link(`${PAGE}settings`, "settings", t("settings"), "settings")}
    ${link(`${PAGE}devices`, "devices", session.user || t("devices"), "device")}
  </nav>`;
}

function sessionLinks({ page, sessions, contextId: shown }: Places) {
  return html`<a
      href="${PAGE}new"
      class="narrow-only ${page === "new" ? "on" : ""}"
      aria-current=${page === "new" ? "page" : nothing}
      >${icon("plus")}<span>${t("newSession")}</span></a
    >
    <h2 class="wide-only">${t("sessions")}</h2>
    ${sessions
      .slice(0, LISTED)
      .map(
        ({ contextId, title, state }) =>
          html`<a
            href=${sessionPath(contextId)}
            class="task wide-only ${contextId === shown ? "on" : ""}"
            aria-current=${contextId === shown ? "page" : nothing}
            >${stateMark(taskStateOf(state))}<span class="cut" dir="auto"
              >${visibleLine(title, 60) || contextId}</span
            ></a
          >`,
      )}
    <a
      href="${PAGE}new"
      class="task wide-only ${page === "new" ? "on" : ""}"
      aria-current=${page === "new" ? "page" : nothing}
      >${icon("plus")}<span class="grow">${t("newSession")}</span><kbd>c</kbd></a
    >`;
}
