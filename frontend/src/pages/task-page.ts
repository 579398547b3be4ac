import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { repeat } from "lit/directives/repeat.js";
import { TaskFollower, cancel, getTask, prompt, runCommand, tasksOf, type StreamState } from "../client.ts";
import { icon, stateMark, toolIcon } from "../icons.ts";
import { markdown } from "../markdown.ts";
import { ENDED, type TaskState, type ToolCall } from "../protocol.ts";
import { diffOf, factsOf, shownPath } from "../question.ts";
import { outputText, visible, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import type { TaskStore } from "../store.ts";
import { type Item, TaskFold } from "../task-fold.ts";
import { t } from "../words.ts";
import { PageElement, go, isForPage } from "../parts/base.ts";
import { countsOf } from "../parts/diff-view.ts";
import { type PromptBox, type Written, isCommand } from "../parts/prompt-box.ts";
import "../parts/question-card.ts";

/** Pixels from the end within which new content keeps the end in view. */
const NEAR_END = 80;
/** Items that are drawn at first, and added at a time when the reader scrolls up. */
const WINDOW = 60;
const EARLIER_TASKS = 30;

/** A task: its conversation in order, live, with its questions and a box for the next message. */
@customElement("isthmus-task")
export class TaskPage extends PageElement {
  @property() taskId = "";
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @state() private stream: StreamState = { is: "connecting" };
  @state() private problem = "";
  @state() private isSending = false;
  @state() private open = new Set<string>();
  @state() private first = 0;
  @query(".scroll") private scroller!: HTMLElement;
  @query("isthmus-prompt") private box!: PromptBox;
  #fold = new TaskFold();
  #follower: TaskFollower | undefined;
  #earlier: { fold: TaskFold; follower: TaskFollower }[] = [];
  #leaving: AbortController | undefined;
  #isAtEnd = true;
  #escapedAt = 0;
  #frame = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    document.addEventListener("visibilitychange", this.#again);
    addEventListener("online", this.#again);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    document.removeEventListener("visibilitychange", this.#again);
    removeEventListener("online", this.#again);
    this.#leave();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("taskId") && this.taskId) this.#begin();
  }

  #begin(): void {
    this.#leave();
    this.#isAtEnd = true;
    this.first = 0;
    this.problem = "";
    this.#fold = new TaskFold();
    const leaving = (this.#leaving = new AbortController());
    this.#follower = this.#follow(this.taskId, this.#fold);
    void this.#beginEarlier(this.taskId, leaving.signal).catch(() => undefined);
  }

  #leave(): void {
    this.#leaving?.abort();
    this.#follower?.stop();
    for (const { follower } of this.#earlier) follower.stop();
    this.#earlier = [];
  }

  /** Show the tasks of the session before this one, each from its first event. */
  async #beginEarlier(taskId: string, leaving: AbortSignal): Promise<void> {
    const own = this.store.rows.get(taskId) ?? (await getTask(taskId));
    const rows = (await tasksOf(own.contextId)).filter((row) => row.createdAt < own.createdAt && row.id !== taskId);
    if (leaving.aborted) return;
    this.#earlier = rows.slice(-EARLIER_TASKS).map((row) => {
      const fold = new TaskFold(row.id);
      return { fold, follower: this.#follow(row.id, fold, false) };
    });
  }

  #follow(taskId: string, fold: TaskFold, isOwn = true): TaskFollower {
    return new TaskFollower(
      taskId,
      (events) => {
        fold.apply(events);
        // Many events of one moment are drawn once.
        this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.requestUpdate(); });
      },
      (found) => { if (isOwn && fold === this.#fold) this.stream = found; },
    );
  }

  override updated(): void {
    if (this.#isAtEnd && this.scroller) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  get #items(): Item[] {
    return [...this.#earlier.flatMap(({ fold }) => fold.items), ...this.#fold.items];
  }

  get #state(): TaskState {
    return this.#fold.state === "submitted" ? (this.store.rows.get(this.taskId)?.state ?? "submitted") : this.#fold.state;
  }

  override render() {
    const fold = this.#fold, row = fold.row ?? this.store.rows.get(this.taskId);
    const workspace = row?.workspace ?? "", isWorking = !ENDED.has(this.#state) && this.#state !== "input-required";
    const questions = fold.questions, items = this.#items, from = Math.max(0, Math.min(items.length - WINDOW - this.first, items.length));
    return html`
      <main class="pane surface">
        <div class="head">
          ${stateMark(this.#state)}
          <h1 class="cut" dir="auto">${visibleLine(row?.title ?? "", 200)}</h1>
          <span class="xs t3 cut wide-only" dir="auto">${visible(workspace)}</span>
          <span class="right row">${ENDED.has(this.#state) ? nothing : html`<button class="b small" @click=${() => void this.#stop()}>${icon("stop")}${t("stop")} <kbd class="wide-only">esc esc</kbd></button>`}</span>
        </div>
        <div class="scroll" tabindex="0" role="log" aria-live="off" @scroll=${this.#scrolled}>
          <div class="col">
            ${from > 0 ? html`<button class="b small quiet" @click=${() => { this.first += WINDOW; }}>${t("more")}</button>` : nothing}
            ${repeat(items.slice(from), (item) => item.key, (item) => this.#item(item, workspace, questions))}
          </div>
        </div>
        ${this.#banner()}
        ${questions[0] ? html`<isthmus-question class="docked" .call=${questions[0]} .taskId=${this.taskId} .workspace=${workspace}
            ?isOff=${this.stream.is !== "live"} ?takesKeys=${true} @sent=${() => this.store.refresh()}></isthmus-question>` : nothing}
        <div class="foot"><div class="col">
          ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
          <isthmus-prompt .hint=${isWorking ? t("promptQueued") : t("promptNext")} ?isQueueing=${isWorking} ?isBusy=${this.isSending}
            .draftKey=${`draft:${row?.contextId ?? this.taskId}`} .contextId=${row?.contextId ?? ""} @written=${(event: CustomEvent<Written>) => void this.#write(event.detail)}></isthmus-prompt>
        </div></div>
      </main>
      <aside class="aside" aria-label=${t("plan")}>
        <div class="head"><span class="sm sb">${stateWord(this.#state)}</span></div>
        ${fold.todos.length ? html`<section><h2>${t("plan")}</h2><ul>${fold.todos.map((todo) => html`<li class=${todo.status === "in_progress" ? "md" : ""}>${stateMark(todoState(todo.status))}<span dir="auto">${visibleLine(todo.description)}</span></li>`)}</ul></section>` : nothing}
        ${fold.changedFiles.length ? html`<section><h2>${t("changedFiles")}</h2><ul>${fold.changedFiles.map((file) => html`<li><span class="grow cut" dir="auto">${shownPath(file.path, workspace)}</span><span class="num"><span class="add">+${file.added}</span> <span class="del">−${file.removed}</span></span></li>`)}</ul></section>` : nothing}
      </aside>`;
  }

  #item(item: Item, workspace: string, questions: ToolCall[]) {
    switch (item.is) {
      case "prompt":
        return html`<div class="said" dir="auto">${visible(item.text)}</div>`;
      case "text":
        return html`<div class="prose" dir="auto">${markdown(item.text)}</div>`;
      case "thought":
        return html`<details class="thought"><summary>${t("thought")} <span class="t3 cut" dir="auto">${visibleLine(item.subject, 120)}</span></summary><div class="prose t2" dir="auto">${markdown(item.description)}</div></details>`;
      case "end":
        return html`<p class="problem">${stateWord(item.state)}${item.error ? `: ${visible(item.error)}` : ""}</p>`;
      case "call":
        return this.#callRow(item, workspace, questions);
    }
  }

  #callRow(item: Extract<Item, { is: "call" }>, workspace: string, questions: ToolCall[]) {
    const call = item.call, facts = factsOf(call, workspace), diff = diffOf(call), isOpen = this.open.has(item.key);
    const isRunning = call.status === "EXECUTING", live = isRunning ? call.live_content : undefined;
    const text = call.error?.message ?? call.output?.text ?? (call.output?.structured_data === undefined ? "" : JSON.stringify(call.output.structured_data, null, 2));
    const mark: TaskState = call.status === "SUCCEEDED" ? "completed" : call.status === "FAILED" ? "failed" : call.status === "CANCELLED" ? "canceled"
      : questions.some((question) => question.tool_call_id === call.tool_call_id) ? "input-required" : "working";
    const canOpen = !isRunning && (diff !== undefined || text !== "");
    return html`<div class="calls">
      <div class="call">${stateMark(mark)}${toolIcon(call.tool_name)}
        <span class="cut grow" dir="auto">${facts.verb} ${facts.verb ? html`<code>${facts.object}</code>` : facts.object} ${diff ? countsOf(diff.old_content, diff.new_content) : nothing}</span>
        <span class="right row t3 xs">${item.answeredBy ? html`<span class="wide-only" dir="auto">${t("answered", visibleLine(item.answeredBy, 60))}</span>` : nothing}
          ${isRunning ? html`<span class="num">${Math.max(0, Math.round((this.now - item.since) / 1000))} s</span>` : nothing}
          ${canOpen ? html`<button class="b small quiet" aria-expanded=${isOpen} @click=${() => this.#toggle(item.key)}>${diff ? t("showDiff") : t("showOutput")}</button>` : nothing}
        </span></div>
      ${live ? this.#output(live, 4_000) : nothing}
      ${isOpen && diff ? html`<isthmus-diff .oldText=${diff.old_content} .newText=${diff.new_content} .path=${facts.object}></isthmus-diff>` : nothing}
      ${isOpen && !diff && text ? this.#output(text, 20_000) : nothing}
    </div>`;
  }

  #output(content: string, limit: number) {
    const { text, hidden } = outputText(content, limit);
    return html`<pre class="out" tabindex="0">${hidden ? html`<span class="t3">${t("linesAbove", hidden.toLocaleString())}\n</span>` : nothing}${text}</pre>`;
  }

  #banner() {
    const found = this.stream;
    if (found.is === "waiting") {
      const seconds = Math.max(0, Math.ceil((found.until - this.now) / 1000));
      return html`<div class="banner" role="status">${t("reconnecting", seconds)} <button class="b small" @click=${() => this.#follower?.retry()}>${t("retryNow")}</button></div>`;
    }
    return found.is === "failed" ? html`<div class="banner" role="alert">${visibleLine(found.reason, 300)}</div>` : nothing;
  }

  #toggle(key: string): void {
    const open = new Set(this.open);
    if (!open.delete(key)) open.add(key);
    this.open = open;
  }

  #scrolled = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.#isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END;
    if (scrollTop < 200 && this.#items.length - WINDOW - this.first > 0) {
      const before = scrollHeight;
      this.first += WINDOW;
      void this.updateComplete.then(() => { this.scroller.scrollTop += this.scroller.scrollHeight - before; });
    }
  };

  async #write(written: Written): Promise<void> {
    const row = this.#fold.row ?? this.store.rows.get(this.taskId);
    if (!row) return;
    this.isSending = true;
    this.problem = "";
    try {
      if (isCommand(written)) {
        const taskId = await runCommand(written.text, { contextId: row.contextId, ...(written.mode ? { mode: written.mode } : {}) });
        this.box.clear();
        this.store.refresh();
        go(`/ui/task/${taskId}`);
        return;
      }
      const begun = await prompt(written.text, { contextId: row.contextId, ...(written.mode ? { mode: written.mode } : {}), images: written.images });
      this.box.clear();
      this.store.put(begun);
      go(`/ui/task/${begun.id}`);
    } catch (error) {
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    } finally {
      this.isSending = false;
    }
  }

  async #stop(): Promise<void> {
    try {
      await cancel(this.taskId);
    } catch (error) {
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    }
  }

  #again = (): void => {
    if (!document.hidden) this.#follower?.retry();
  };

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    if (event.key === "i") this.box.write();
    else if (event.key === "Escape") {
      if (performance.now() - this.#escapedAt < 600 && !ENDED.has(this.#state)) void this.#stop();
      this.#escapedAt = performance.now();
    } else if (event.key === "r") this.#follower?.retry();
    else return;
    event.preventDefault();
  };
}

function stateWord(state: TaskState): string {
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
