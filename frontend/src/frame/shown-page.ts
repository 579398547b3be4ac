// The page that an address means, with what it is given.

import { html } from "lit";
import type { ReviewStore } from "../server/reviews.ts";
import type { Route } from "../routes.ts";
import type { Session } from "../server/session.ts";
import type { SessionList } from "../server/sessions.ts";
import type { TaskStore } from "../server/store.ts";
import { PAGE } from "../place.ts";
import { ask } from "../questions/words.ts";
import { t } from "../words.ts";
import { nowhere } from "./nowhere.ts";
import { f } from "./words.ts";

/** What pages show; `now` is in ms, `version` counts the changes of the stores. */
export interface Shown {
  route: Route;
  session: Session;
  store: TaskStore;
  sessions: SessionList;
  reviews: ReviewStore;
  now: number;
  version: number;
}

export function shownPage({ route, session, store, sessions, reviews, now, version }: Shown) {
  const { name, id, session: address } = route;
  switch (name) {
    case "inbox":
      return html`<isthmus-inbox
        .address=${id}
        .sessions=${sessions}
        .store=${store}
        .reviews=${reviews}
        .now=${now}
        .version=${version}
        ?isWhole=${(!session.tasks || store.isLoaded) && (!session.reviews || reviews.isLoaded)}
        .agent=${session.agent}
      ></isthmus-inbox>`;
    case "history":
      return html`<isthmus-history
        .store=${store}
        .list=${sessions}
        .now=${now}
        .version=${version}
      ></isthmus-history>`;
    case "diff":
      return html`<isthmus-session-diff .taskId=${id}></isthmus-session-diff>`;
    case "written":
      return html`<isthmus-written .companion=${id} .reviews=${reviews} .version=${version}></isthmus-written>`;
    case "files":
      return html`<isthmus-files .reviews=${reviews} .version=${version}></isthmus-files>`;
    case "devices":
      return html`<isthmus-devices .now=${now} ?isOwner=${!session.user && session.tasks}></isthmus-devices>`;
    case "tools":
      return html`<isthmus-tools .session=${session}></isthmus-tools>`;
    case "settings":
      return html`<isthmus-settings></isthmus-settings>`;
    case "new":
      return html`<isthmus-new .store=${store} .session=${session}></isthmus-new>`;
    case "unknown":
      return nowhere(t("noPage"), f("noPageText"), { path: PAGE, words: ask("toInbox") });
    case "session":
    case "task":
      return html`<isthmus-task
        .contextId=${address?.contextId ?? ""}
        .turn=${address?.turn ?? ""}
        .taskId=${name === "task" ? id : ""}
        .store=${store}
        .sessions=${sessions}
        .now=${now}
        .storeVersion=${version}
        .agent=${session.agent}
      ></isthmus-task>`;
  }
}
