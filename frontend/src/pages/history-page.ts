import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Hit, HistorySearch, type StateName } from "../history-search.ts";
import { icon, stateMark } from "../icons.ts";
import type { TaskRow } from "../protocol.ts";
import { visible, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import type { TaskStore } from "../store.ts";
import { age, t } from "../words.ts";
import { PageElement } from "../parts/base.ts";
import { isComposing, isForPage } from "../keys.ts";
import { PAGE } from "../place.ts";

/** Typing is not searched for before this pause. */
const PAUSE_MS = 200;

const STATES: [StateName, () => string][] = [
  ["", () => t("anyState")],
  ["waiting", () => t("stateWaiting")],
  ["working", () => t("stateWorking")],
  ["done", () => t("stateDone")],
  ["failed", () => t("stateFailed")],
];

/** All tasks of the user, changed last first, with a search over all of them. */
@customElement("isthmus-history")
export class HistoryPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) version = 0;
  @state() private search: HistorySearch | undefined;
  @state() private problem = "";
  #words = "";
  #state: StateName = "";
  #timer = 0;
  /** The tasks that are shown: they stay where they are, with the focus, until the next search has found something. */
  #hits: readonly Hit[] = [];

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    this.store.addEventListener("reached", this.#again);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.store.removeEventListener("reached", this.#again);
    clearTimeout(this.#timer);
    this.search?.stop();
  }

  #seek(): void {
    clearTimeout(this.#timer);
    const words = this.#words.trim();
    if (!words && !this.#state) {
      this.search?.stop();
      this.search = undefined;
      this.#hits = [];
      this.problem = "";
      return;
    }
    this.#timer = window.setTimeout(
      () => {
        this.search?.stop();
        this.search = new HistorySearch(words, this.#state, () => this.requestUpdate());
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
      if (search === this.search)
        this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 300) : t("noReach");
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
            maxlength="200"
            @input=${(event: Event) => {
              this.#words = (event.target as HTMLInputElement).value;
              this.#seek();
            }}
          />
          <select
            class="field"
            aria-label=${t("state")}
            @change=${(event: Event) => {
              this.#state = (event.target as HTMLSelectElement).value as StateName;
              this.#seek();
            }}
          >
            ${STATES.map(([name, words]) => html`<option value=${name}>${words()}</option>`)}
          </select>
        </div>
      </div>
      ${this.search ? this.#found(this.search) : this.#all()}
    </main>`;
  }

  #all() {
    const tasks = this.store.tasks;
    return html`<ul class="scroll rows">
      ${tasks.map((task) => this.#row(task, ""))}
      ${
        !tasks.length && this.store.isLoaded
          ? html`<li class="empty">
              <p>${t("emptyHistory")}</p>
              <p class="t3">${t("emptyHistoryNext")}</p>
            </li>`
          : nothing
      }
      ${this.store.hasMore ? html`<li class="center"><button class="b small" @click=${() => void this.store.more()}>${t("more")}</button></li>` : nothing}
    </ul>`;
  }

  #found(search: HistorySearch) {
    if (search.hasResults) this.#hits = search.hits;
    const hits = this.#hits;
    const { searched, total, isRunning, isDone } = search;
    const [found, looked, all] = [hits.length, searched, total].map((count) => count.toLocaleString());
    const said = isRunning
      ? total
        ? t("searching", looked ?? "", all ?? "")
        : t("connecting")
      : isDone
        ? t("foundAll", found ?? "", all ?? "")
        : t("foundSome", found ?? "", looked ?? "", all ?? "");
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : html`<p class="progress" role="status">${said}</p>`}
      <ul class="scroll rows">
        ${hits.map((hit) => this.#row(this.store.rows.get(hit.id) ?? { ...hit, changedAt: hit.changed * 1000 }, hit.prompt))}
        ${isDone && !hits.length ? html`<li class="empty"><p>${t("noneFound")}</p></li>` : nothing}
        ${!isDone && !isRunning ? html`<li class="center"><button class="b small" @click=${() => this.#more()}>${t("searchOn")}</button></li>` : nothing}
      </ul>`;
  }

  #row(task: Pick<TaskRow, "id" | "title" | "state" | "workspace" | "changedAt">, prompt: Hit["prompt"]) {
    return html`<li class="row beside">
      <a class="line grow" href="${PAGE}task/${task.id}"
        >${stateMark(task.state)}
        <span class="hit"
          ><span class="cut" dir="auto">${visibleLine(task.title, 200) || task.id}</span
          >${prompt ? html`<span class="t3 xs cut" dir="auto">${visibleLine(prompt, 200)}</span>` : nothing}</span
        >
        <span class="t3 xs cut wide-only" dir="auto">${visible(task.workspace)}</span>
        <time class="t3 xs num">${age(task.changedAt, this.now)}</time></a
      >
      <a
        class="b small quiet icon"
        href="${PAGE}diff/${task.id}"
        aria-label="${t("sessionDiff")}: ${visibleLine(task.title, 60)}"
        title=${t("sessionDiff")}
        >${icon("sides")}</a
      >
    </li>`;
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
