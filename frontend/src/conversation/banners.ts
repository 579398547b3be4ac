// Banners of a conversation: about its connection, and about a session that was put away.

import { html, nothing } from "lit";
import { icon } from "../frame/icons.ts";
import { visibleLine } from "../text/safe.ts";
import type { SessionStream } from "./session-stream.ts";
import { exactClock, t } from "../words.ts";

/** Return what is to be said of the connection of a session at `now`, in ms. */
export function connectionBanner(session: SessionStream, now: number) {
  const { fetched, stream } = session;
  if (stream.is === "waiting") {
    const seconds = Math.max(0, Math.ceil((stream.until - now) / 1000));
    return html`<div class="banner lost-banner" role="status">
      ${icon("link")}
      <div>
        <p class="md">
          ${session.lostAt ? t("lostAt", exactClock(session.lostAt / 1000)) : t("notReached")} ${t("nextTry", seconds)}
        </p>
        <p class="t2">${t("goesOnWithout")}</p>
      </div>
      <button class="b small right" @click=${() => session.retry()}>${t("retryNow")} <kbd>r</kbd></button>
    </div>`;
  }
  if (stream.is !== "failed" && session.fold.isOffline)
    return html`<div class="banner" role="status">${t("modelOffline")}</div>`;
  if (stream.is === "failed") return html`<div class="banner" role="alert">${visibleLine(stream.reason, 300)}</div>`;
  return fetched ? html`<div class="banner back" role="status">${t("fetched", fetched)}</div>` : nothing;
}

export function archivedBanner(restore: () => void) {
  return html`<div class="banner back" role="status">
    ${t("isArchived")} <button class="b small" @click=${restore}>${t("unarchive")}</button>
  </div>`;
}
