// The line above a conversation: its state and title, where it works, and what is done with it as a whole.

import { html, nothing } from "lit";
import { icon, stateMark } from "../frame/icons.ts";
import { badge } from "../parts/cards/asker.ts";
import "../parts/rows/session-title.ts";
import { PAGE } from "../place.ts";
import { ENDED, type TaskState } from "../server/protocol.ts";
import { visible, visibleLine } from "../text/safe.ts";
import type { Change, WholeSession } from "../server/sessions.ts";
import { t } from "../words.ts";

export interface HeadFacts {
  /** Undefined while it is not known. */
  state: TaskState | undefined;
  /** Whether the connection is lost, so that the state is the one that was last seen. */
  isLost: boolean;
  /** Name of the agent. */
  agent: string;
  title: string;
  workspace: string;
  session: WholeSession | undefined;
  /** Task whose session has changes to look at; empty without one. */
  diffOf: string;
  hasAside: boolean;
}

/** The actions of the head and of the menu. */
export interface HeadActions {
  change(change: Change): void;
  stop(): void;
  turnAside(): void;
  rename(): void;
  find(): void;
}

export function sessionHead(facts: HeadFacts, actions: HeadActions) {
  const { session, diffOf } = facts;
  return html`<div class="head session-head">
    ${facts.state && !(facts.isLost && !facts.title) ? stateMark(facts.state, facts.isLost) : nothing}
    <isthmus-title
      .name=${facts.title}
      .given=${session?.given ?? ""}
      ?canRename=${session !== undefined}
      @renamed=${(event: CustomEvent<string>) => actions.change({ do: "rename", title: event.detail })}
    ></isthmus-title>
    ${facts.agent ? html`<span title=${facts.agent}>${badge("", facts.agent)}<span class="vh">${facts.agent}</span></span>` : nothing}
    <span class="xs t3 cut wide-only where" dir="auto">${visible(facts.workspace)}</span>
    ${session?.branch ? html`<span class="xs t3 cut wide-only branch" title=${t("branch")}>${icon("branch")}<span class="vh">${t("branch")}: </span><span dir="auto">${visibleLine(session.branch, 80)}</span></span>` : nothing}
    <span class="right row"
      >${diffOf ? html`<a class="b small quiet wide-only" href="${PAGE}diff/${diffOf}">${icon("sides")}${t("sessionDiffShort")} <kbd>d</kbd></a>` : nothing}
      ${!facts.state || ENDED.has(facts.state) ? nothing : html`<button class="b small" @click=${() => actions.stop()}>${icon("stop")}${t("stop")} <kbd class="wide-only">esc esc</kbd></button>`}
      <button
        class="b small quiet aside-only"
        aria-expanded=${facts.hasAside}
        aria-controls="aside"
        @click=${() => actions.turnAside()}
      >
        ${t("details")}
      </button></span
    >
  </div>`;
}

/** Return what can be done with the session as a whole. */
export function sessionMenu(session: WholeSession, actions: HeadActions) {
  return html`<section class="row">
    <button class="b small" @click=${() => actions.rename()}>${icon("edit")}${t("rename")} <kbd>F2</kbd></button>
    <button class="b small" @click=${() => actions.change({ do: session.archived ? "restore" : "archive" })}>
      ${icon(session.archived ? "undo" : "archive")}${t(session.archived ? "unarchive" : "archive")}
    </button>
    <button class="b small" @click=${() => actions.find()}>${icon("search")}${t("search")} <kbd>/</kbd></button>
  </section>`;
}
