import { html, nothing } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { SessionStatus } from "../../client.ts";
import { contextFigures, costFigures } from "../../frame/session-figures.ts";
import { tellFigures } from "../../frame/figures.ts";
import { f } from "../../frame/words.ts";
import { stateMark } from "../../frame/icons.ts";
import { ENDED, type FileDiff, type TaskRow, type TaskState } from "../../server/protocol.ts";
import { shownPath } from "../../questions/question.ts";
import { visibleLine } from "../../text/safe.ts";
import type { TaskStore } from "../../server/store.ts";
import type { ChangedFile, TaskFold } from "../../task/task-fold.ts";
import { numeral } from "../../language.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";
import { countsOf, shownCounts } from "../files/counts.ts";
import { PAGE } from "../../place.ts";

/** Maximum number of files and subagents that are listed. */
const LISTED = 200;

/** Return the files that turns have changed, each once, with the lines of all its changes. */
export function filesOf(folds: readonly Pick<TaskFold, "changedFiles">[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const { path, added, removed } of folds.flatMap((fold) => fold.changedFiles)) {
    const known = files.get(path) ?? { path, added: 0, removed: 0 };
    files.set(path, { path, added: known.added + added, removed: known.removed + removed });
  }
  return [...files.values()];
}

/** Return a time in ms as minutes and seconds, such as 6:12, or with hours, such as 1:06:12. */
export function duration(time: number): string {
  const seconds = Math.max(0, Math.floor(time / 1000));
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [first = 0, ...rest] = parts[0] ? parts : parts.slice(1);
  return [first, ...rest.map((part) => String(part).padStart(2, "0"))].join(":");
}

/** Facts of a session beside its conversation, as figures: context, cost, plan, changed files and subagents. */
@customElement("isthmus-aside")
export class TaskAside extends PageElement {
  /** The newest turn. */
  @property({ attribute: false }) fold!: TaskFold;
  /** The turns that are shown. */
  @property({ attribute: false }) folds: readonly TaskFold[] = [];
  @property({ attribute: false }) store!: TaskStore;
  @property() taskId = "";
  /** Number of the newest turn; 0 for a task alone. */
  @property({ type: Number }) turn = 0;
  /** What can be done with the session. */
  @property({ attribute: false }) more: unknown = nothing;
  @property() state: TaskState = "submitted";
  /** Whether the state was read. */
  @property({ type: Boolean }) isKnown = false;
  @property() version = "";
  /** Whether the connection is lost, so that the state is the one that was last seen. */
  @property({ type: Boolean }) isLost = false;
  @property({ type: Number }) now = Date.now();
  @property({ attribute: false }) status: SessionStatus | undefined;
  #told = "";

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    tellFigures(undefined);
    this.#told = "";
  }

  override updated(): void {
    const { tokens, used, cost = "", model = "" } = this.status ?? {};
    const row = this.#row;
    const figures = {
      folder: row?.workspace ?? "",
      model: model || (row?.model ?? ""),
      tokens: used ? used.input + used.output : tokens,
      cost,
    };
    const told = JSON.stringify(figures);
    if (told === this.#told) return;
    this.#told = told;
    tellFigures(figures);
  }

  get #row(): TaskRow | undefined {
    return this.fold.row ?? this.store.rows.get(this.taskId);
  }

  override render() {
    const { fold, status } = this;
    const row = this.#row;
    return html`<div class="head">
        <h2 class="sm sb">${this.#stateText(row)}</h2>
        ${this.turn ? html`<span class="right xs t3 num">${this.#turnText(row)}</span>` : nothing}
      </div>
      ${contextFigures(status)} ${costFigures(status, fold.usage)} ${this.#plan()} ${this.#files(row)}
      ${this.#subagents()} ${row?.parent ? this.#parent(row.parent) : nothing} ${this.#place(row)} ${this.more}`;
  }

  /** Return the state in words; nothing while no state was ever seen. */
  #stateText(row: TaskRow | undefined): string {
    if (!this.isKnown || (this.isLost && !row)) return "";
    return this.isLost && !ENDED.has(this.state) ? t("lastSeenAs", stateWord(this.state)) : stateWord(this.state);
  }

  #turnText(row: TaskRow | undefined): string {
    const turn = numeral(this.turn);
    if (!row?.createdAt) return t("turnNumber", turn);
    return f("turnFor", turn, duration((ENDED.has(this.state) ? row.changedAt : this.now) - row.createdAt));
  }

  #plan() {
    const { todos } = this.fold;
    if (!todos.length) return nothing;
    return html`<section>
      <h2>${t("plan")}</h2>
      <ul>
        ${todos.map((todo) => html`<li class=${todo.status === "in_progress" ? "md" : todo.status === "pending" ? "t2" : ""}>${stateMark(todoState(todo.status), this.isLost)}<span dir="auto">${visibleLine(todo.description)}</span></li>`)}
      </ul>
    </section>`;
  }

  /** The files that were changed, and those that the user is asked about. */
  #files(row: TaskRow | undefined) {
    const changed = filesOf(this.folds);
    const asked: FileDiff[] = this.folds.flatMap((fold) =>
      fold.questions.flatMap((call) => call.confirmation_request?.file_edit_details ?? []),
    );
    if (!changed.length && !asked.length) return nothing;
    const path = (text: string) => shownPath(text, row?.workspace ?? "");
    return html`<section>
      <h2>${t("changedFiles")}</h2>
      <ul>
        ${changed.slice(0, LISTED).map((file) => html`<li><span class="grow cut" dir="auto" title=${path(file.path)}>${path(file.path)}</span>${shownCounts(file)}</li>`)}
        ${asked.slice(0, LISTED).map((diff) => html`<li class="t3"><span class="grow cut" dir="auto">${f("ifAllowed", path(diff.file_path))}</span>${countsOf(diff)}</li>`)}
      </ul>
      ${row && !row.parent ? html`<a href="${PAGE}diff/${this.taskId}">${t("sessionDiff")}</a>` : nothing}
    </section>`;
  }

  #subagents() {
    const children = this.folds.flatMap(({ name }) => this.store.childrenOf(name)).slice(0, LISTED);
    if (!children.length) return nothing;
    const time = (child: TaskRow) => duration((ENDED.has(child.state) ? child.changedAt : this.now) - child.createdAt);
    return html`<section>
      <h2>${t("subagents")}</h2>
      <ul>
        ${children.map(
          (child) =>
            html`<li>
              ${stateMark(child.state, this.isLost)}<span class="grow about"
                ><a class="cut" href="${PAGE}task/${child.id}" dir="auto"
                  >${visibleLine(child.title, 120) || child.id}</a
                ><span class="xs t3 num">${stateWord(child.state)} · ${time(child)}</span></span
              >
            </li>`,
        )}
      </ul>
    </section>`;
  }

  #parent(parent: string) {
    return html`<section>
      <h2>${t("begunBy")}</h2>
      <a href="${PAGE}task/${parent}" dir="auto"
        >${visibleLine(this.store.rows.get(parent)?.title ?? "", 120) || parent}</a
      >
    </section>`;
  }

  /** What the status line shows where there is one. */
  #place(row: TaskRow | undefined) {
    const facts = [
      [t("model"), this.status?.model || (row?.model ?? "")],
      [t("folder"), row?.workspace ?? ""],
    ].filter(([, value]) => value);
    if (!facts.length) return nothing;
    return html`<section class="place">
      <dl class="kv">
        ${facts.map(
          ([name, value = ""]) =>
            html`<dt>${name}</dt>
              <dd dir="auto">${visibleLine(value, 300)}</dd>`,
        )}
      </dl>
    </section>`;
  }
}

export function stateWord(state: TaskState): string {
  if (state === "completed") return t("done");
  if (state === "failed" || state === "rejected") return t("failed");
  if (state === "canceled") return t("canceled");
  return state === "input-required" || state === "auth-required" ? t("waits") : t("working");
}

function todoState(status: string): TaskState | "todo" {
  if (status === "completed") return "completed";
  if (status === "in_progress") return "working";
  return status === "cancelled" ? "canceled" : "todo";
}
