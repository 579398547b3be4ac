import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { cancel, hasCommand, sessionStatus } from "../client.ts";
import { icon, stateMark } from "../icons.ts";
import { ENDED, type TaskState } from "../protocol.ts";
import { LostQuestion } from "../lost-question.ts";
import { MessageQueue, type Queued } from "../queue.ts";
import { factsOf, shownPath } from "../question.ts";
import { branch, rewind } from "../rewind.ts";
import { visible, visibleLine } from "../safe.ts";
import { isCommand, problemOf, sendWritten } from "../sending.ts";
import { type SessionReader, SessionStream } from "../session-stream.ts";
import { StatusReader } from "../session-status.ts";
import type { TaskStore } from "../store.ts";
import type { CallItem, Item, PromptItem } from "../task-fold.ts";
import { t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import type { ItemList } from "../parts/item-list.ts";
import type { PromptBox, Written } from "../parts/prompt-box.ts";
import { type Rows, rowOfItem } from "../parts/task-rows.ts";
import "../parts/item-list.ts";
import { groupsOf } from "../forms/form.ts";
import { askedCard } from "../parts/asked-card.ts";
import type { FormCard } from "../parts/form-card.ts";
import type { QuestionCard } from "../parts/question-card.ts";
import "../parts/prompt-box.ts";
import "../parts/queued-messages.ts";
import "../parts/rewind-ask.ts";
import "../parts/task-aside.ts";
import { isForPage } from "../keys.ts";
import { PAGE } from "../place.ts";

/** Drawing that takes longer than this is done more seldom. */
const SLOW_MS = 12;

/** A task: its conversation in order, live, with its questions and a box for the next message. */
@customElement("isthmus-task")
export class TaskPage extends PageElement {
  @property() taskId = "";
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) storeVersion = 0;
  /** Name of the agent whose task it is. */
  @property() agent = "";
  @state() private problem = "";
  @state() private isSending = false;
  @state() private open = new Set<string>();
  @state() private hasAside = false;
  @state() private version = 0;
  @state() private canBranch = false;
  /** A rewind that the user is asked about, since the server would not. */
  @state() private asked: { what: string; checkpoint: string; files: string[] } | undefined;
  @query("isthmus-items") private list: ItemList | null | undefined;
  @query("isthmus-prompt") private box!: PromptBox;
  #session = new SessionStream(this.#reader());
  #status = new StatusReader(() => this.requestUpdate());
  #queue: MessageQueue | undefined;
  #rows!: Rows;
  /** Key of the item that gets the focus once it is drawn. */
  #revealing = "";
  #escapedAt = -Infinity;
  #timer = 0;
  #drawnIn = 0;
  #lost = new LostQuestion();

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    this.#session.attach();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.#session.detach();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("taskId") && this.taskId) this.#begin();
    const card = () => this.querySelector<QuestionCard | FormCard>("isthmus-question, isthmus-form");
    this.#lost.take(this.#asked, () => card()?.hasText ?? false);
    if (changed.has("now")) this.#session.tick();
    // It changes at the ends of turns.
    const row = this.#fold.row ?? this.store.rows.get(this.taskId);
    const rests = ENDED.has(this.#state) || this.#state === "input-required";
    if (row && rests)
      this.#status.look({ contextId: row.contextId }, `${this.taskId} ${this.#state} ${this.#fold.questions.length}`);
  }

  #begin(): void {
    this.problem = "";
    this.asked = undefined;
    this.canBranch = false;
    this.#lost.close();
    this.list?.reset();
    const known = this.store.rows.get(this.taskId);
    this.#queue = known && new MessageQueue(known.contextId);
    this.#session.begin(this.taskId, this.store);
  }

  #reader(): SessionReader {
    const hasQueued = () => !!this.#queue?.messages.length;
    return {
      came: () => this.#draw(),
      turned: () => this.requestUpdate(),
      found: (contextId) => {
        this.#queue ??= new MessageQueue(contextId);
        this.requestUpdate();
        hasCommand(["chat", "fork"], contextId).then(
          (has) => {
            this.canBranch = has;
          },
          () => undefined,
        );
      },
      get mustSeeEnd() {
        return hasQueued();
      },
    };
  }

  /** Draw what many events of one moment have changed, once; more seldom if drawing takes long. */
  #draw(): void {
    if (this.#timer) return;
    const draw = () => {
      this.#timer = 0;
      this.version += 1;
      const begin = performance.now();
      void this.updateComplete
        .then(() => this.list?.updateComplete)
        .then(() => {
          this.#drawnIn = performance.now() - begin;
        });
    };
    this.#timer = this.#drawnIn > SLOW_MS ? window.setTimeout(draw, 4 * this.#drawnIn) : requestAnimationFrame(draw);
  }

  #failed = (): void => {
    this.#lost.failed(this.#asked);
    this.requestUpdate();
  };

  #closeLost = (): void => {
    this.#lost.close();
    this.requestUpdate();
  };

  /** The open questions, each with the calls that are asked together. */
  get #asked() {
    return groupsOf(this.#fold.questions);
  }

  get #fold() {
    return this.#session.fold;
  }

  get #state(): TaskState {
    return this.#fold.state === "submitted"
      ? (this.store.rows.get(this.taskId)?.state ?? "submitted")
      : this.#fold.state;
  }

  override render() {
    const fold = this.#fold;
    const row = fold.row ?? this.store.rows.get(this.taskId);
    const workspace = row?.workspace ?? "";
    const isWorking = !ENDED.has(this.#state) && this.#state !== "input-required";
    const questions = fold.questions;
    const lost = this.#lost.calls;
    const asked = lost ?? this.#lost.shown ?? this.#asked[0];
    const isOver = ENDED.has(this.#state);
    this.#rows = {
      now: this.now,
      workspace,
      asking: new Set(questions.map((question) => question.tool_call_id)),
      open: this.open,
      set: (key, isOpen) => this.#set(key, isOpen),
      toggle: (item) => void this.#toggle(item),
      rests: isOver && !this.isSending && this.asked === undefined,
      canBranch: this.canBranch && !row?.parent,
      rewind: (item) => void this.#askRewind(item),
      branch: (item) => void this.#branch(item),
    };
    return html` <main class="pane surface">
        <div class="head">
          ${stateMark(this.#state)}
          <h1 class="cut" dir="auto">${visibleLine(row?.title ?? "", 200)}</h1>
          <span class="xs t3 cut wide-only" dir="auto">${visible(workspace)}</span>
          <span class="right row"
            >${row && !row.parent ? html`<a class="b small quiet wide-only" href="${PAGE}diff/${this.taskId}">${icon("sides")}${t("sessionDiffShort")} <kbd>d</kbd></a>` : nothing}
            ${isOver ? nothing : html`<button class="b small" @click=${() => void this.#stop()}>${icon("stop")}${t("stop")} <kbd class="wide-only">esc esc</kbd></button>`}
            <button
              class="b small quiet aside-only"
              aria-expanded=${this.hasAside}
              aria-controls="aside"
              @click=${() => {
                this.hasAside = !this.hasAside;
              }}
            >
              ${t("details")}
            </button></span
          >
        </div>
        <isthmus-items
          tabindex="0"
          role="log"
          aria-live="off"
          aria-label=${visibleLine(row?.title ?? "", 80) || t("tasks")}
          .items=${this.#session.items}
          .draw=${this.#item}
          .version=${`${this.version} ${this.now}`}
        ></isthmus-items>
        ${this.#banner()}
        ${
          asked
            ? askedCard(
                {
                  calls: asked,
                  open: new Set(questions.map((call) => call.tool_call_id)),
                  answers: fold.answers,
                  task: row,
                  taskId: this.taskId,
                  agent: this.agent,
                  hasEnded: lost !== undefined,
                  isOff: this.#session.stream.is !== "live",
                  more: "docked",
                  answering: () => this.#lost.answering(),
                  failed: this.#failed,
                  sent: () => this.store.refresh(),
                },
                this,
              )
            : nothing
        }
        ${
          lost
            ? html`<div class="docked actions">
                <button class="b small" @click=${this.#closeLost}>${t("close")} <kbd>esc</kbd></button>
              </div>`
            : nothing
        }
        ${
          this.asked
            ? html`<isthmus-rewind
                class="docked"
                .what=${this.asked.what}
                .files=${this.asked.files}
                @agreed=${() => void this.#rewind(this.asked?.checkpoint ?? "")}
                @closed=${() => {
                  this.asked = undefined;
                  this.list?.focus();
                }}
              ></isthmus-rewind>`
            : nothing
        }
        ${
          isOver && !questions[0] && !this.asked && row && !row.parent
            ? html`<isthmus-trust
                class="docked"
                .workspace=${workspace}
                .occasion=${`${this.taskId} ${this.#state}`}
                ?takesKeys=${true}
              ></isthmus-trust>`
            : nothing
        }
        <div class="foot">
          <div class="col">
            ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
            ${
              this.#queue?.messages.length
                ? html`<isthmus-queued
                    .messages=${this.#queue.messages}
                    ?isHeld=${isOver && this.#state !== "completed"}
                    ?isBusy=${this.isSending}
                    @removed=${(event: CustomEvent<Queued>) => {
                      this.#queue?.remove(event.detail.id);
                      this.version += 1;
                    }}
                    @sendnow=${(event: CustomEvent<Queued>) => void this.#sendQueued(event.detail)}
                  ></isthmus-queued>`
                : nothing
            }
            <isthmus-prompt
              .hint=${isWorking ? t("promptQueued") : t("promptNext")}
              ?isQueueing=${isWorking}
              ?isBusy=${this.isSending}
              .draftKey=${`draft:${row?.contextId ?? this.taskId}`}
              .contextId=${row?.contextId ?? ""}
              .status=${this.#status.status}
              @written=${(event: CustomEvent<Written>) => void this.#write(event.detail)}
            ></isthmus-prompt>
          </div>
        </div>
      </main>
      <aside id="aside" tabindex="0" class="aside ${this.hasAside ? "open" : ""}" aria-label=${t("details")}>
        <isthmus-aside
          .status=${this.#status.status}
          .fold=${fold}
          .store=${this.store}
          .taskId=${this.taskId}
          .state=${this.#state}
          .version=${`${this.version} ${this.storeVersion}`}
        ></isthmus-aside>
      </aside>`;
  }

  #item = (item: Item) => rowOfItem(item, this.#rows);

  override updated(): void {
    this.#sendNext();
  }

  #banner() {
    const found = this.#session.stream;
    const { fetched } = this.#session;
    if (found.is === "waiting") {
      const seconds = Math.max(0, Math.ceil((found.until - this.now) / 1000));
      return html`<div class="banner" role="status">
        ${t("reconnecting", seconds)}
        <button class="b small" @click=${() => this.#session.retry()}>${t("retryNow")}</button>
      </div>`;
    }
    if (found.is !== "failed" && this.#fold.isOffline)
      return html`<div class="banner" role="status">${t("modelOffline")}</div>`;
    if (found.is === "failed") return html`<div class="banner" role="alert">${visibleLine(found.reason, 300)}</div>`;
    return fetched
      ? html`<div class="banner back" role="status">${t("fetched", fetched.toLocaleString())}</div>`
      : nothing;
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
    try {
      await this.#session.restore(item);
    } catch (error) {
      this.#set(item.key, false);
      this.problem = problemOf(error);
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
    if (
      next &&
      this.#fold.state === "completed" &&
      this.#session.stream.is === "ended" &&
      !this.isSending &&
      !this.problem
    )
      void this.#sendQueued(next);
  }

  async #sendQueued(message: Queued): Promise<void> {
    const row = this.#fold.row ?? this.store.rows.get(this.taskId);
    const queue = this.#queue;
    if (!row || !queue || this.isSending) return;
    await this.#send(message, row.contextId, () => queue.remove(message.id));
  }

  /** Send a message as the next task of the session, and go there. */
  async #send(written: Written, contextId: string, onSent = () => {}): Promise<boolean> {
    this.isSending = true;
    this.problem = "";
    try {
      const taskId = await sendWritten(written, { contextId }, this.store);
      onSent();
      go(`${PAGE}task/${taskId}`);
      return true;
    } catch (error) {
      this.problem = problemOf(error);
      return false;
    } finally {
      this.isSending = false;
    }
  }

  /** Do something that ends at another task, and go there. */
  async #leadOn(begin: () => Promise<string>): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    this.problem = "";
    try {
      const taskId = await begin();
      this.store.refresh();
      go(`${PAGE}task/${taskId}`);
    } catch (error) {
      this.problem = problemOf(error);
    } finally {
      this.isSending = false;
    }
  }

  /** Rewind to a checkpoint. The server asks and names the files, unless everything is allowed: then the page asks. */
  async #askRewind(item: PromptItem | CallItem): Promise<void> {
    const row = this.#fold.row;
    const { checkpoint } = item;
    if (!row || !checkpoint) return;
    const status = await sessionStatus({ contextId: row.contextId }).catch(() => undefined);
    if (status?.mode && status.mode !== "yolo") {
      await this.#rewind(checkpoint);
      return;
    }
    const { folds } = this.#session;
    const from = folds.indexOf(this.#session.foldOf(item));
    const files = new Set(
      folds.slice(from).flatMap((fold) => fold.changedFiles.map((file) => shownPath(file.path, row.workspace))),
    );
    this.asked = {
      what: item.is === "prompt" ? item.text : factsOf(item.call, row.workspace).object,
      checkpoint,
      files: [...files],
    };
  }

  async #rewind(checkpoint: string): Promise<void> {
    const row = this.#fold.row;
    this.asked = undefined;
    if (row) await this.#leadOn(() => rewind(row.contextId, checkpoint));
  }

  async #branch(item: PromptItem): Promise<void> {
    const row = this.#fold.row;
    const { name } = this.#session.foldOf(item);
    if (row) await this.#leadOn(() => branch(row.contextId, name, row.workspace));
  }

  /** Return the index of the user's message that keys mean: that with the focus, otherwise the last one. */
  get #chosen(): number {
    const { items } = this.#session;
    const focused = document.activeElement?.closest<HTMLElement & { key: string }>(".it");
    const key = this.#revealing || focused?.key;
    const at = key ? items.findIndex((item) => item.key === key) : -1;
    return at >= 0 ? at : items.findLastIndex((item) => item.is === "prompt");
  }

  /** Go to the next or the previous message of the user. */
  #step(by: 1 | -1): void {
    const { items } = this.#session;
    const hasFocus = this.#revealing || document.activeElement?.closest(".it");
    let at = hasFocus ? this.#chosen + by : by > 0 ? 0 : items.length - 1;
    while (items[at] && items[at]?.is !== "prompt") at += by;
    this.#revealing = items[at]?.key ?? "";
    if (!this.#revealing) return;
    void this.list?.reveal(at).finally(() => {
      this.#revealing = "";
    });
  }

  #pressFor(key: string): void {
    const { items } = this.#session;
    let at = this.#chosen;
    while (at > 0 && items[at]?.is !== "prompt") at -= 1;
    const item = items[at];
    if (item?.is !== "prompt" || !this.#rows.rests) return;
    if (key === "z" && item.checkpoint) this.#rows.rewind(item);
    else if (key === "b" && this.#rows.canBranch && !isCommand(item.text)) this.#rows.branch(item);
  }

  async #stop(): Promise<void> {
    try {
      await cancel(this.taskId);
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event)) return;
    if (event.key === "i") this.box.write();
    else if (event.key === "l") this.box.chooseModel();
    else if (event.key === "d") go(`${PAGE}diff/${this.taskId}`);
    else if (event.key === "j" || event.key === "k") this.#step(event.key === "j" ? 1 : -1);
    else if (event.key === "z" || event.key === "b") this.#pressFor(event.key);
    else if (event.key === "Escape" && this.#lost.calls) this.#closeLost();
    else if (event.key === "Escape" && this.hasAside) this.hasAside = false;
    else if (event.key === "Escape") {
      if (performance.now() - this.#escapedAt < 600 && !ENDED.has(this.#state)) void this.#stop();
      this.#escapedAt = performance.now();
    } else if (event.key === "r") this.#session.retry();
    else return;
    event.preventDefault();
  };
}
