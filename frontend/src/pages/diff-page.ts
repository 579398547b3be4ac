import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { getTask, runCommand, tasksOf } from "../client.ts";
import { icon } from "../frame/icons.ts";
import { ENDED, type TaskEvent, type TaskRow } from "../server/protocol.ts";
import { ended } from "../conversation/rewind.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { problemOf } from "../problems/problem.ts";
import { type FilePart, type SessionDiff, filesOf } from "../diff/editor/unified-diff.ts";
import { exactClock, t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import { failedToLoad } from "../parts/loading.ts";
import { nowhere } from "../frame/nowhere.ts";
import { f } from "../frame/words.ts";
import { isNotThere } from "../server/session.ts";
import type { DiffElement } from "../parts/files/diff-view.ts";
import { shownCounts } from "../parts/files/counts.ts";
import "../parts/files/diff-view.ts";
import { isForPage } from "../frame/keys.ts";
import { PAGE } from "../place.ts";

/** Files that are open at first; each open one is an editor. */
const OPEN = 20;
const COMMAND = "/diff";

/** The diff of a whole session, file by file: what the agent's command /diff tells. */
@customElement("isthmus-session-diff")
export class DiffPage extends PageElement {
  /** A task of the session. */
  @property() taskId = "";
  @state() private row: TaskRow | undefined;
  @state() private found: SessionDiff | undefined;
  @state() private open: ReadonlySet<number> = new Set();
  @state() private made = 0;
  @state() private problem = "";
  @state() private isBusy = false;
  /** Whether there is no such task. */
  @state() private isNowhere = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("taskId") && this.taskId) void this.#make(false);
  }

  override render() {
    if (this.isNowhere)
      return nowhere(t("noSession"), t("noSessionText"), { path: `${PAGE}history`, words: f("toHistory") });
    const { found, row } = this;
    const total = { added: 0, removed: 0 };
    for (const file of found?.files ?? []) {
      total.added += file.added;
      total.removed += file.removed;
    }
    return html`<main class="pane surface span">
      <div class="head">
        <a class="b small quiet icon" href="${PAGE}task/${this.taskId}" aria-label=${t("back")}>${icon("back")}</a>
        <h1 class="cut" dir="auto">
          ${t("sessionDiff")}<span class="t3 wide-only"> ${visibleLine(row?.title ?? "", 100)}</span>
        </h1>
        ${found?.files.length ? shownCounts(total) : nothing}
        <span class="right row"
          >${this.made ? html`<time class="t3 xs num wide-only">${t("asOf", exactClock(this.made / 1000))}</time>` : nothing}
          <button class="b small" ?disabled=${this.isBusy} @click=${() => void this.#make(true)}>
            ${t("refresh")} <kbd>r</kbd>
          </button></span
        >
      </div>
      <div class="scroll" tabindex="0">
        ${this.problem ? failedToLoad(this.problem, () => void this.#make(false)) : nothing}
        ${this.isBusy ? html`<p class="empty" role="status">${t("comparing")}</p>` : nothing}
        ${found ? html`${found.notes.map((note) => html`<p class="note t2 sm" dir="auto">${visible(note)}</p>`)}${found.files.map((file, at) => this.#file(file, at))}` : nothing}
      </div>
    </main>`;
  }

  #file(file: FilePart, at: number) {
    const isOpen = this.open.has(at);
    return html`<section class="file" aria-label=${visibleLine(file.path)}>
      <h2 class="dhead">
        <button class="b small quiet grow start" aria-expanded=${isOpen} @click=${() => this.#toggle(at)}>
          ${icon("file")}<code class="cut" dir="auto">${visible(file.path)}</code>
          ${file.isNew ? html`<span class="pill">${t("newOne")}</span>` : nothing} ${shownCounts(file)}
        </button>
      </h2>
      ${
        isOpen
          ? html`<isthmus-diff
              .oldText=${file.isNew ? undefined : file.before}
              .newText=${file.after}
              .path=${file.path}
              .numbers=${{ before: file.numbersBefore, after: file.numbersAfter }}
            ></isthmus-diff>`
          : nothing
      }
    </section>`;
  }

  #toggle(at: number): void {
    const open = new Set(this.open);
    if (!open.delete(at)) open.add(at);
    this.open = open;
  }

  /** Show the last diff of the session if nothing was done since; run the command otherwise, or if a new one is wanted. */
  async #make(isWanted: boolean): Promise<void> {
    const { taskId } = this;
    this.problem = "";
    this.isNowhere = false;
    this.isBusy = true;
    if (!isWanted) this.found = undefined;
    try {
      const row = await getTask(taskId);
      const tasks = await tasksOf(row.contextId);
      const last = tasks.at(-1);
      const isDone = last?.title === COMMAND && last.state === "completed";
      if (!isWanted || !isDone) {
        // A command would come between the calls of the work under way.
        if (tasks.some((task) => !ENDED.has(task.state))) throw new Error(t("diffWhenDone"));
      }
      const made = isDone && !isWanted ? last.id : await runCommand(COMMAND, { contextId: row.contextId });
      const events = await ended(made);
      if (taskId !== this.taskId) return;
      this.row = row.title === COMMAND ? tasks.find((task) => !task.title.startsWith("/")) : row;
      this.found = filesOf(textOf(events));
      this.open = new Set(this.found.files.slice(0, OPEN).keys());
      this.made = Math.max(...events.map((event) => ("at" in event ? event.at : 0)));
    } catch (error) {
      if (isNotThere(error)) this.isNowhere = true;
      else this.problem = error instanceof Error && !("status" in error) ? error.message : problemOf(error);
    } finally {
      this.isBusy = false;
    }
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    if (event.key === "Escape") go(`${PAGE}task/${this.taskId}`);
    else if (event.key === "r" && !this.isBusy) void this.#make(true);
    else if (event.key === "v") this.#turn();
    else if (event.key === "j" || event.key === "k") this.#step(event.key === "j" ? 1 : -1);
    else return;
    event.preventDefault();
  };

  /** Change all files between side by side and one column, for this device. */
  #turn(): void {
    const [first, ...others] = this.querySelectorAll<DiffElement>("isthmus-diff");
    first?.toggle();
    for (const diff of others) diff.fit();
  }

  /** Go to the next or the previous file. */
  #step(by: 1 | -1): void {
    const buttons = [...this.querySelectorAll<HTMLElement>(".file .dhead button")];
    const at = buttons.findIndex((button) => button === document.activeElement);
    const next = buttons[at < 0 ? 0 : Math.min(buttons.length - 1, Math.max(0, at + by))];
    next?.closest(".file")?.scrollIntoView({ block: "start" });
    next?.focus({ preventScroll: true });
  }
}

function textOf(events: readonly TaskEvent[]): string {
  return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
}
