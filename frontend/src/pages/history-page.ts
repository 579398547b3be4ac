import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { live } from "lit/directives/live.js";
import { icon, stateMark } from "../frame/icons.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { problemOf } from "../problems/problem.ts";
import { SessionSearch } from "../server/session-search.ts";
import { type SessionFacts, type SessionList, sessionPath, taskStateOf } from "../server/sessions.ts";
import type { TaskStore } from "../server/store.ts";
import { age, t } from "../words.ts";
import { loadingRows } from "../parts/loading.ts";
import { PageElement } from "../parts/base.ts";
import { isComposing, isForPage } from "../frame/keys.ts";
import { PAGE } from "../place.ts";
import { LONGEST_SOUGHT, SOUGHT_STATES, type Sought, type SoughtState, queryOf, soughtIn } from "../routes.ts";
import { rename } from "../visits.ts";

/** Typing is not searched for before this pause. */
const PAUSE_MS = 200;

const STATES: Readonly<Record<SoughtState, () => string>> = {
  "": () => t("anyState"),
  waiting: () => t("stateWaiting"),
  working: () => t("working"),
  done: () => t("done"),
  failed: () => t("stateFailed"),
  archived: () => t("stateArchived"),
};

/** All sessions of the user, changed last first, with a search over all of them. */
@customElement("isthmus-history")
export class HistoryPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ attribute: false }) list!: SessionList;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) version = 0;
  @state() private search: SessionSearch | undefined;
  @state() private problem = "";
  /** What is sought: it is in the address, so that it is there again on the way back. */
  #sought = soughtIn(location.search);
  #timer = 0;
  /** The sessions that are shown: they stay where they are, with the focus, until the next search has found something. */
  #hits: readonly SessionFacts[] = [];

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    addEventListener("popstate", this.#read);
    this.store.addEventListener("reached", this.#again);
    this.#seek();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    removeEventListener("popstate", this.#read);
    this.store.removeEventListener("reached", this.#again);
    clearTimeout(this.#timer);
    this.search?.stop();
  }

  /** The link to the history was followed from the history itself. */
  #read = (): void => {
    if (location.pathname !== `${PAGE}history` || location.search === queryOf(this.#sought)) return;
    this.#sought = soughtIn(location.search);
    this.#seek();
    this.requestUpdate();
  };

  #change(sought: Partial<Sought>): void {
    this.#sought = { ...this.#sought, ...sought };
    rename(location.pathname + queryOf(this.#sought));
    this.#seek();
  }

  #seek(): void {
    clearTimeout(this.#timer);
    const { state } = this.#sought;
    const words = this.#sought.words.trim();
    if (!words && !state) {
      this.search?.stop();
      this.search = undefined;
      this.#hits = [];
      this.problem = "";
      return;
    }
    this.#timer = window.setTimeout(
      () => {
        this.search?.stop();
        const archived = state === "archived";
        this.search = new SessionSearch({ words, archived, state: archived ? "" : state }, () => this.requestUpdate());
        this.#more();
      },
      this.search ? PAUSE_MS : 0,
    );
  }

  /** The server, or its journal, is there again: go on with a search that has failed. */
  #again = (): void => {
    if (this.problem) this.#more();
  };

  #more(): void {
    const search = this.search;
    this.problem = "";
    search?.more().catch((error: unknown) => {
      if (search === this.search) this.problem = problemOf(error);
    });
  }

  override render() {
    return html`<main class="pane surface span">
      <div class="head">
        <h1>${t("history")}</h1>
        <div class="filters">
          <input
            class="field"
            type="search"
            placeholder=${t("searchHistory")}
            aria-label=${t("searchHistory")}
            maxlength=${LONGEST_SOUGHT}
            .value=${live(this.#sought.words)}
            @input=${(event: Event) => this.#change({ words: (event.target as HTMLInputElement).value })}
          />
          <select
            class="field"
            aria-label=${t("state")}
            @change=${(event: Event) => this.#change({ state: (event.target as HTMLSelectElement).value as SoughtState })}
          >
            ${SOUGHT_STATES.map(
              (name) =>
                html`<option value=${name} .selected=${live(name === this.#sought.state)}>${STATES[name]()}</option>`,
            )}
          </select>
        </div>
      </div>
      ${this.search ? this.#found(this.search) : html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}${this.#all()}`}
    </main>`;
  }

  #all() {
    const { sessions } = this.list;
    return html`<ul class="scroll rows">
      ${sessions.map((session) => this.#row(session))}
      ${this.list.isLoaded || sessions.length ? nothing : loadingRows(this.store.isReached)}
      ${
        !sessions.length && this.list.isLoaded
          ? html`<li class="empty">
              <p>${t("emptyHistory")}</p>
              <p class="t3">${t("emptyHistoryNext")}</p>
            </li>`
          : nothing
      }
      ${this.list.hasMore ? html`<li class="center"><button class="b small" @click=${() => void this.list.more().catch(() => undefined)}>${t("more")}</button></li>` : nothing}
    </ul>`;
  }

  #found(search: SessionSearch) {
    if (search.hasResults) this.#hits = search.hits;
    const hits = this.#hits;
    const live = new Map(this.list.sessions.map((session) => [session.contextId, session]));
    const { searched, isRunning, isDone } = search;
    const [found, looked] = [hits.length, searched];
    const said = isRunning
      ? searched
        ? t("searching", looked)
        : t("connecting")
      : t(isDone ? "foundAll" : "foundSome", found, looked);
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : html`<p class="progress" role="status">${said}</p>`}
      <ul class="scroll rows">
        ${hits.map((hit) => this.#row({ ...hit, ...live.get(hit.contextId), prompt: hit.prompt ?? "" }))}
        ${isDone && !hits.length ? html`<li class="empty"><p>${t(search.sought.archived && !search.sought.words ? "noneArchived" : "noneFound")}</p></li>` : nothing}
        ${!isDone && !isRunning ? html`<li class="center"><button class="b small" @click=${() => this.#more()}>${t("searchOn")}</button></li>` : nothing}
      </ul>`;
  }

  #row(session: SessionFacts) {
    const { contextId, title, prompt, archived, turns } = session;
    const name = visibleLine(title, 60);
    const [change, words] = archived ? (["restore", t("unarchive")] as const) : (["archive", t("archive")] as const);
    return html`<li class="row beside">
      <a class="line grow" href=${sessionPath(contextId)}
        >${stateMark(taskStateOf(session))}
        <span class="hit"
          ><span class="cut" dir="auto">${visibleLine(title, 200) || contextId}</span
          >${prompt ? html`<span class="t3 xs cut" dir="auto">${visibleLine(prompt, 200)}</span>` : nothing}</span
        >
        <span class="t3 xs num wide-only">${turns === 1 ? t("oneTurn") : t("countTurns", turns)}</span>
        <span class="t3 xs cut wide-only where" dir="auto">${visible(session.workspace)}</span>
        <time class="t3 xs num">${age(session.changed * 1000, this.now)}</time></a
      >
      <a
        class="b small quiet icon"
        href="${PAGE}diff/${session.task}"
        aria-label="${t("sessionDiff")}: ${name}"
        title=${t("sessionDiff")}
        >${icon("sides")}</a
      >
      <button
        class="b small quiet icon"
        aria-label="${words}: ${name}"
        title=${words}
        @click=${() => void this.#put(session, change)}
      >
        ${icon(archived ? "undo" : "archive")}
      </button>
    </li>`;
  }

  async #put(session: SessionFacts, change: "archive" | "restore"): Promise<void> {
    this.problem = "";
    try {
      const changed = await this.list.change(session.contextId, { do: change });
      // It stays where it is in what was found, so that it can be taken back.
      const hit = this.#hits.find((one) => one.contextId === session.contextId);
      if (hit) hit.archived = changed.archived;
      this.requestUpdate();
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #press = (event: KeyboardEvent): void => {
    const field = this.querySelector<HTMLInputElement>("input");
    if (event.target === field && event.key === "ArrowDown" && !isComposing(event))
      this.querySelector<HTMLElement>("a.line")?.focus();
    else if (isForPage(event) && event.key === "/") field?.focus();
    else if (isForPage(event) && (event.key === "j" || event.key === "k")) {
      const rows = [...this.querySelectorAll<HTMLElement>("a.line")];
      const at = rows.indexOf(document.activeElement as HTMLElement);
      rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
    } else return;
    event.preventDefault();
  };
}
