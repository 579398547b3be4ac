// The end of a session's column: what went wrong, the messages that wait, and the box for the next one.

import { html, nothing } from "lit";
import type { SessionStatus } from "../client.ts";
import type { Written } from "../parts/prompt/prompt-box.ts";
import "../parts/prompt/prompt-box.ts";
import "../parts/prompt/queued-messages.ts";
import { ENDED } from "../server/protocol.ts";
import type { Change } from "../server/sessions.ts";
import { t } from "../words.ts";
import type { SessionInView } from "./in-view.ts";

/** The actions of the foot. */
export interface FootActions {
  change(change: Change): void;
  drafted(text: string): void;
  write(written: Written): void;
}

/** Return the foot of a session; `draftKey` names its draft in this browser. */
export function sessionFoot(
  view: SessionInView,
  status: SessionStatus | undefined,
  draftKey: string,
  actions: FootActions,
) {
  const { action, state } = view;
  const { session } = view.stream;
  const isOver = ENDED.has(state);
  return html`<div class="foot">
    <div class="col">
      ${action.problem ? html`<p class="problem" role="alert">${action.problem}</p>` : nothing}
      ${
        session?.queued.length
          ? html`<isthmus-queued
              .messages=${session.queued}
              ?isHeld=${isOver && state !== "completed"}
              ?isBusy=${action.isUnderWay}
              @changing=${(event: CustomEvent<Change>) => actions.change(event.detail)}
            ></isthmus-queued>`
          : nothing
      }
      <isthmus-prompt
        ?isLost=${view.stream.stream.is === "waiting"}
        .hint=${hintFor(view)}
        ?isQueueing=${!isOver && view.isKnown}
        ?isShort=${state === "input-required"}
        ?isBusy=${action.isUnderWay}
        .draftKey=${draftKey}
        .contextId=${view.context}
        .draft=${session?.draft ?? ""}
        @drafted=${(event: CustomEvent<string>) => actions.drafted(event.detail)}
        .status=${status}
        @written=${(event: CustomEvent<Written>) => actions.write(event.detail)}
      ></isthmus-prompt>
    </div>
  </div>`;
}

/** Return the words in the empty field. While a question waits, it is one line beside what is chosen. */
function hintFor({ state, isKnown }: SessionInView): string {
  if (ENDED.has(state) || !isKnown) return t("promptNext");
  return state === "input-required" ? t("promptShort") : t("promptQueued");
}
