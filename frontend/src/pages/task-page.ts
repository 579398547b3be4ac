import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { TaskFollower, cancel, eventsAgain, getTask, prompt, runCommand, tasksOf, type StreamState } from "../client.ts";
import { icon, stateMark, toolIcon } from "../icons.ts";
import { markdownOf } from "../markdown.ts";
import { ENDED, type TaskState } from "../protocol.ts";
import { diffOf, factsOf } from "../question.ts";
import { MessageQueue, type Queued } from "../queue.ts";
import { outputText, visible, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import type { TaskStore } from "../store.ts";
import { type CallItem, type Item, TaskFold } from "../task-fold.ts";
import { t } from "../words.ts";
import { PageElement, go, isForPage } from "../parts/base.ts";
import { shownCounts } from "../parts/diff-view.ts";
import type { ItemList } from "../parts/item-list.ts";
import { type PromptBox, type Written, isCommand } from "../parts/prompt-box.ts";
import { stateWord } from "../parts/task-aside.ts";
import "../parts/item-list.ts";
import "../parts/question-card.ts";
import "../parts/queued-messages.ts";

const EARLIER_TASKS = 30;
/** Characters of results that are kept of an earlier task. */
const EARLIER_CHARACTERS = 300_000;
const LONGEST_PROMPT = 20_000;
/** Drawing that takes longer than this is done more seldom. */
const SLOW_MS = 12;
/** Events that come within this time after an interruption were missed; the note of them stays for a while. */
const GATHER_MS = 700;
const BACK_MS = 4_000;
/** A page that is hidden for this long gives its connection up. */
const HIDDEN_MS = 30_000;

/** A task: its conversation in order, live, with its questions and a box for the next message. */
@customElement("isthmus-task")
export class TaskPage extends PageElement {
  @property() taskId = "";
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) storeVersion = 0;
  @state() private stream: StreamState = { is: "connecting" };
  @state() private problem = "";
  @state() private isSending = false;
  @state() private open = new Set<string>();
  @state() private fetched = 0;
  @state() private hasAside = false;
  @state() private version = 0;
  @query("isthmus-items") private list: ItemList | null | undefined;
  @query("isthmus-prompt") private box!: PromptBox;
  #fold = new TaskFold();
  #follower: TaskFollower | undefined;
  #earlier: { taskId: string; fold: TaskFold; follower: TaskFollower }[] = [];
  #joined: readonly Item[] = [];
  #joinedAt = "";
  #leaving: AbortController | undefined;
  #queue: MessageQueue | undefined;
  #workspace = "";
  #asking: ReadonlySet<string> = new Set();
  #escapedAt = 0;
  #timer = 0;
  #drawnIn = 0;
  /** Number of events before an interruption, until what came meanwhile was counted. */
  #missed: number | undefined;
  #countAtTick = 0;
  #backTimer = 0;
  #hiddenTimer = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    document.addEventListener("visibilitychange", this.#again);
    document.addEventListener("resume", this.#wake);
    addEventListener("slept", this.#wake);
    addEventListener("online", this.#wake);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    document.removeEventListener("visibilitychange", this.#again);
    document.removeEventListener("resume", this.#wake);
    removeEventListener("slept", this.#wake);
    removeEventListener("online", this.#wake);
    this.#leave();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("taskId") && this.taskId) this.#begin();
    if (changed.has("now")) this.#countAtTick = this.#fold.count;
  }

  #begin(): void {
    this.#leave();
    this.problem = "";
    this.fetched = 0;
    this.#missed = undefined;
    clearTimeout(this.#backTimer);
    this.#backTimer = 0;
    this.#fold = new TaskFold();
    this.list?.reset();
    const known = this.store.rows.get(this.taskId);
    this.#queue = known && new MessageQueue(known.contextId);
    const leaving = (this.#leaving = new AbortController());
    this.#follower = this.#follow(this.taskId, this.#fold);
    void this.#beginEarlier(this.taskId, leaving.signal).catch(() => undefined);
  }

  #leave(): void {
    clearTimeout(this.#hiddenTimer);
    this.#leaving?.abort();
    this.#follower?.stop();
    for (const { follower } of this.#earlier) follower.stop();
    this.#earlier = [];
  }

  /** Show the tasks of the session before this one, each from its first event. */
  async #beginEarlier(taskId: string, leaving: AbortSignal): Promise<void> {
    const own = this.store.rows.get(taskId) ?? (await getTask(taskId));
    if (leaving.aborted) return;
    this.#queue ??= new MessageQueue(own.contextId);
    this.requestUpdate();
    const rows = (await tasksOf(own.contextId)).filter((row) => row.createdAt < own.createdAt && row.id !== taskId);
    if (leaving.aborted) return;
    this.#earlier = rows.slice(-EARLIER_TASKS).map((row) => {
      const fold = new TaskFold(row.id, EARLIER_CHARACTERS);
      return { taskId: row.id, fold, follower: this.#follow(row.id, fold, false) };
    });
  }

  #follow(taskId: string, fold: TaskFold, isOwn = true): TaskFollower {
    return new TaskFollower(
      taskId,
      (events) => {
        fold.apply(events);
        this.#draw();
      },
      (found) => {
        if (!isOwn || fold !== this.#fold) return;
        if (found.is === "waiting") this.#expectMissed();
        else if (found.is === "live" || found.is === "ended") this.#tellMissed();
        this.stream = found;
      },
    );
  }

  /** Draw what many events of one moment have changed, once; more seldom if drawing takes long. */
  #draw(): void {
    if (this.#timer) return;
    const draw = () => {
      this.#timer = 0;
      this.version += 1;
      const begin = performance.now();
      void this.updateComplete.then(() => this.list?.updateComplete).then(() => { this.#drawnIn = performance.now() - begin; });
    };
    this.#timer = this.#drawnIn > SLOW_MS ? window.setTimeout(draw, 4 * this.#drawnIn) : requestAnimationFrame(draw);
  }

  get #items(): readonly Item[] {
    if (!this.#earlier.length) return this.#fold.items;
    const version = [this.#fold, ...this.#earlier.map(({ fold }) => fold)].map((fold) => fold.items.length).join();
    if (version !== this.#joinedAt) {
      this.#joinedAt = version;
      this.#joined = [...this.#earlier.flatMap(({ fold }) => fold.items), ...this.#fold.items];
    }
    return this.#joined;
  }

  get #state(): TaskState {
    return this.#fold.state === "submitted" ? (this.store.rows.get(this.taskId)?.state ?? "submitted") : this.#fold.state;
  }

  override render() {
    const fold = this.#fold, row = fold.row ?? this.store.rows.get(this.taskId);
    const workspace = row?.workspace ?? "", isWorking = !ENDED.has(this.#state) && this.#state !== "input-required";
    const questions = fold.questions, isOver = ENDED.has(this.#state);
    this.#workspace = workspace;
    this.#asking = new Set(questions.map((question) => question.tool_call_id));
    return html`
      <main class="pane surface">
        <div class="head">
          ${stateMark(this.#state)}
          <h1 class="cut" dir="auto">${visibleLine(row?.title ?? "", 200)}</h1>
          <span class="xs t3 cut wide-only" dir="auto">${visible(workspace)}</span>
          <span class="right row">${isOver ? nothing : html`<button class="b small" @click=${() => void this.#stop()}>${icon("stop")}${t("stop")} <kbd class="wide-only">esc esc</kbd></button>`}
            <button class="b small quiet aside-only" aria-expanded=${this.hasAside} aria-controls="aside" @click=${() => { this.hasAside = !this.hasAside; }}>${t("details")}</button></span>
        </div>
        <isthmus-items tabindex="0" role="log" aria-live="off" aria-label=${visibleLine(row?.title ?? "", 80) || t("tasks")}
          .items=${this.#items} .draw=${this.#item} .version=${`${this.version} ${this.now}`}></isthmus-items>
        ${this.#banner()}
        ${questions[0] ? html`<isthmus-question class="docked" .call=${questions[0]} .taskId=${this.taskId} .workspace=${workspace}
            ?isOff=${this.stream.is !== "live"} ?takesKeys=${true} @sent=${() => this.store.refresh()}></isthmus-question>` : nothing}
        <div class="foot"><div class="col">
          ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
          ${this.#queue?.messages.length ? html`<isthmus-queued .messages=${this.#queue.messages} ?isHeld=${isOver && this.#state !== "completed"} ?isBusy=${this.isSending}
            @removed=${(event: CustomEvent<Queued>) => { this.#queue?.remove(event.detail.id); this.version += 1; }}
            @sendnow=${(event: CustomEvent<Queued>) => void this.#sendQueued(event.detail)}></isthmus-queued>` : nothing}
          <isthmus-prompt .hint=${isWorking ? t("promptQueued") : t("promptNext")} ?isQueueing=${isWorking} ?isBusy=${this.isSending}
            .draftKey=${`draft:${row?.contextId ?? this.taskId}`} .contextId=${row?.contextId ?? ""} @written=${(event: CustomEvent<Written>) => void this.#write(event.detail)}></isthmus-prompt>
        </div></div>
      </main>
      <aside id="aside" tabindex="0" class="aside ${this.hasAside ? "open" : ""}" aria-label=${t("details")}>
        <isthmus-aside .fold=${fold} .store=${this.store} .taskId=${this.taskId} .state=${this.#state} .version=${`${this.version} ${this.storeVersion}`}></isthmus-aside>
      </aside>`;
  }

  override updated(): void {
    this.#sendNext();
  }

  #item = (item: Item) => {
    switch (item.is) {
      case "prompt":
        return html`<div class="said" dir="auto">${this.#beginning(item.text)}</div>`;
      case "text":
        return html`<div class="prose" dir="auto">${markdownOf(item, item.prefix ? `${item.prefix}\n${item.text}` : item.text)}</div>`;
      case "thought":
        return html`<details class="thought" ?open=${this.open.has(item.key)} @toggle=${(event: Event) => this.#set(item.key, (event.target as HTMLDetailsElement).open)}>
          <summary>${t("thought")} <span class="t3 cut" dir="auto">${visibleLine(item.subject.slice(0, 500), 120)}</span></summary>
          ${this.open.has(item.key) ? html`<div class="prose t2" dir="auto">${markdownOf(item, item.description)}</div>` : nothing}</details>`;
      case "end":
        return html`<p class="problem">${stateWord(item.state)}${item.error ? html`: ${this.#beginning(item.error)}` : nothing}</p>`;
      case "call":
        return this.#callRow(item);
    }
  };

  #beginning(text: string) {
    const rest = text.length - LONGEST_PROMPT;
    return rest > 0 ? html`${visible(text.slice(0, LONGEST_PROMPT))}\u2026 <span class="t3">${t("notShown", rest.toLocaleString())}</span>` : visible(text);
  }

  #callRow(item: CallItem) {
    const call = item.call, facts = factsOf(call, this.#workspace), diff = diffOf(call), isOpen = this.open.has(item.key);
    const isRunning = call.status === "EXECUTING", live = isRunning ? call.live_content : undefined;
    const text = isRunning ? "" : (call.error?.message ?? call.output?.text ?? "");
    const mark: TaskState = call.status === "SUCCEEDED" ? "completed" : call.status === "FAILED" ? "failed" : call.status === "CANCELLED" ? "canceled"
      : this.#asking.has(call.tool_call_id) ? "input-required" : "working";
    const canOpen = !isRunning && (diff !== undefined || text !== "" || item.fetched > 0);
    return html`<div class="calls">
      <div class="call">${stateMark(mark)}${toolIcon(call.tool_name)}
        <span class="cut grow" dir="auto">${facts.verb} ${facts.verb ? html`<code>${facts.object}</code>` : facts.object} ${item.counts ? shownCounts(item.counts) : nothing}</span>
        <span class="right row t3 xs">${item.answeredBy ? html`<span class="wide-only" dir="auto">${t("answered", visibleLine(item.answeredBy, 60))}</span>` : nothing}
          ${isRunning ? html`<span class="num">${Math.max(0, Math.round((this.now - item.since) / 1000))} s</span>` : nothing}
          ${canOpen ? html`<button class="b small quiet" aria-expanded=${isOpen} @click=${() => void this.#toggle(item)}>${diff ? t("showDiff") : t("showOutput")}</button>` : nothing}
        </span></div>
      ${live ? this.#output(live, 4_000) : nothing}
      ${isOpen && item.fetched ? html`<p class="out" role="status">${t("fetching")}</p>`
        : isOpen && diff ? html`<isthmus-diff .oldText=${diff.old_content} .newText=${diff.new_content} .path=${facts.object}></isthmus-diff>`
        : isOpen && text ? this.#output(text, 20_000) : nothing}
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
    if (found.is === "failed") return html`<div class="banner" role="alert">${visibleLine(found.reason, 300)}</div>`;
    return this.fetched ? html`<div class="banner back" role="status">${t("fetched", this.fetched.toLocaleString())}</div>` : nothing;
  }

  #set(key: string, isOpen: boolean): void {
    if (this.open.has(key) === isOpen) return;
    const open = new Set(this.open);
    if (isOpen) open.add(key);
    else open.delete(key);
    this.open = open;
    this.version += 1;
  }

  async #toggle(item: CallItem): Promise<void> {
    this.#set(item.key, !this.open.has(item.key));
    if (!item.fetched || !this.open.has(item.key)) return;
    const holder = this.#earlier.find(({ fold }) => fold.items.includes(item)), fold = holder?.fold ?? this.#fold;
    try {
      fold.restore(item, await eventsAgain(holder?.taskId ?? this.taskId, item.fetched));
    } catch (error) {
      this.#set(item.key, false);
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    }
    this.version += 1;
  }

  async #write(written: Written): Promise<void> {
    const row = this.#fold.row ?? this.store.rows.get(this.taskId);
    if (!row || this.isSending) return;
    if (ENDED.has(this.#state) && !this.#queue?.messages.length) {
      if (await this.#send(written, row.contextId)) this.box.clear();
      return;
    }
    this.#queue ??= new MessageQueue(row.contextId);
    if (this.#queue.isFull) {
      this.problem = t("queueFull");
      return;
    }
    this.problem = "";
    this.#queue.add(written);
    this.box.clear();
    this.version += 1;
  }

  /** Send the first message that waits, once the work has ended well; what ended otherwise is left to the user. */
  #sendNext(): void {
    const next = this.#queue?.messages[0];
    if (next && this.#fold.state === "completed" && this.stream.is === "ended" && !this.isSending && !this.problem) void this.#sendQueued(next);
  }

  async #sendQueued(message: Queued): Promise<void> {
    const row = this.#fold.row ?? this.store.rows.get(this.taskId), queue = this.#queue;
    if (!row || !queue || this.isSending) return;
    await this.#send(message, row.contextId, () => queue.remove(message.id));
  }

  /** Send a message as the next task of the session, and go there. */
  async #send(written: Written, contextId: string, onSent = () => {}): Promise<boolean> {
    this.isSending = true;
    this.problem = "";
    try {
      if (isCommand(written)) {
        const taskId = await runCommand(written.text, { contextId, ...(written.mode ? { mode: written.mode } : {}) });
        onSent();
        this.store.refresh();
        go(`/ui/task/${taskId}`);
        return true;
      }
      const begun = await prompt(written.text, { contextId, ...(written.mode ? { mode: written.mode } : {}), images: written.images });
      onSent();
      this.store.put(begun);
      go(`/ui/task/${begun.id}`);
      return true;
    } catch (error) {
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
      return false;
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
    clearTimeout(this.#hiddenTimer);
    if (!document.hidden) {
      this.#follower?.retry();
      return;
    }
    // Browsers open few connections to one host. With messages that wait the end of the task must be seen.
    this.#hiddenTimer = window.setTimeout(() => {
      if (this.#queue?.messages.length || ENDED.has(this.#fold.state)) return;
      this.#expectMissed();
      this.#follower?.pause();
    }, HIDDEN_MS);
  };

  /** The page slept: its connections may be dead although nothing says so. */
  #wake = (): void => {
    this.#missed ??= this.#countAtTick;
    this.#follower?.renew();
    for (const { follower } of this.#earlier) follower.renew();
    this.#tellMissed();
  };

  /** Count the events that come first after an interruption, and say how many they were. */
  #expectMissed(): void {
    this.#missed ??= this.#fold.count;
    clearTimeout(this.#backTimer);
    this.#backTimer = 0;
  }

  #tellMissed(): void {
    if (this.#missed === undefined || this.#backTimer) return;
    this.#backTimer = window.setTimeout(() => {
      this.fetched = this.#fold.count - (this.#missed ?? this.#fold.count);
      this.#missed = undefined;
      this.#backTimer = window.setTimeout(() => { this.fetched = 0; this.#backTimer = 0; }, BACK_MS);
    }, GATHER_MS);
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    if (event.key === "i") this.box.write();
    else if (event.key === "Escape" && this.hasAside) this.hasAside = false;
    else if (event.key === "Escape") {
      if (performance.now() - this.#escapedAt < 600 && !ENDED.has(this.#state)) void this.#stop();
      this.#escapedAt = performance.now();
    } else if (event.key === "r") this.#follower?.retry();
    else return;
    event.preventDefault();
  };
}
