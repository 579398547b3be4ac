import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { cancel, getTask, hasCommand, newId, sessionStatus } from "../client.ts";
import { icon, stateMark } from "../icons.ts";
import { ENDED, type TaskState, type ToolCall } from "../protocol.ts";
import { LostQuestion } from "../lost-question.ts";
import { factsOf, shownPath } from "../question.ts";
import { branch, rewind } from "../rewind.ts";
import { visible, visibleLine } from "../safe.ts";
import { isCommand, problemOf, sendWritten } from "../sending.ts";
import { findItems, nextFound } from "../session-find.ts";
import { type SessionReader, SessionStream } from "../session-stream.ts";
import { StatusReader } from "../session-status.ts";
import {
  type Change,
  type SessionFacts,
  type SessionList,
  type WholeSession,
  sessionPath,
  turnAt,
} from "../sessions.ts";
import type { TaskStore } from "../store.ts";
import type { CallItem, Item, PromptItem } from "../task-fold.ts";
import { t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import type { ItemList } from "../parts/item-list.ts";
import type { PromptBox, Written } from "../parts/prompt-box.ts";
import { type Rows, rowOfItem } from "../parts/task-rows.ts";
import type { FindBar } from "../parts/find-bar.ts";
import "../parts/find-bar.ts";
import "../parts/item-list.ts";
import { type Asked, askedCard } from "../parts/asked-card.ts";
import type { FormCard } from "../parts/form-card.ts";
import type { QuestionCard } from "../parts/question-card.ts";
import "../parts/prompt-box.ts";
import "../parts/queued-messages.ts";
import "../parts/rewind-ask.ts";
import type { SessionTitle } from "../parts/session-title.ts";
import "../parts/session-title.ts";
import "../parts/task-aside.ts";
import { isForPage } from "../keys.ts";
import { PAGE } from "../place.ts";

/** Drawing that takes longer than this is done more seldom. */
const SLOW_MS = 12;

/** A session: the conversation of its turns in order, live, with its questions and a box for the next message. */
@customElement("isthmus-task")
export class TaskPage extends PageElement {
  @property() contextId = "";
  /** The turn that the address names: its number from 1, or the id of its task; empty for the end. */
  @property({ attribute: false }) turn: string | number = "";
  /** Task of an address without a session: a subagent's is shown alone, another one leads to its session. */
  @property() taskId = "";
  @property({ attribute: false }) store!: TaskStore;
  @property({ attribute: false }) sessions!: SessionList;
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
  @state() private isFinding = false;
  /** Index of the item that was found last. */
  @state() private foundAt = -1;
  /** A rewind that the user is asked about, since the server would not. */
  @state() private asked: { what: string; checkpoint: string; files: string[] } | undefined;
  @query("isthmus-items") private list: ItemList | null | undefined;
  @query("isthmus-prompt") private box!: PromptBox;
  #session = new SessionStream(this.#reader());
  #status = new StatusReader(() => this.requestUpdate());
  #rows!: Rows;
  #known: WholeSession | undefined;
  /** What was known of the session when its turns were asked for. */
  #compared = "";
  /** Whether the turn that the address names is still to be brought into view. */
  #mustReveal = false;
  #sought = "";
  #hits: readonly number[] = [];
  #hitsOf = "";
  /** Key of the item that was found last, and whether it is still to be brought into view. */
  #foundKey = "";
  #mustShowFound = false;
  /** The messages that are on their way to the server, to wait there. */
  #queueing: Promise<void> = Promise.resolve();
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
    if (changed.has("contextId") || changed.has("taskId")) this.#begin();
    else if (changed.has("turn")) this.#mustReveal = this.turn !== "";
    const card = () => this.querySelector<QuestionCard | FormCard>("isthmus-question, isthmus-form");
    this.#lost.take(this.#session.questions, () => card()?.hasText ?? false);
    if (changed.has("now")) this.#session.tick();
    if (changed.has("storeVersion")) this.#compare();
    // It changes at the ends of turns.
    const rests = ENDED.has(this.#state) || this.#state === "input-required";
    if (this.#context && rests && this.#fold.name)
      this.#status.look(
        { contextId: this.#context },
        `${this.#fold.name} ${this.#state} ${this.#session.questions.length}`,
      );
    if (this.isFinding) this.#find();
  }

  #begin(): void {
    this.problem = "";
    this.asked = undefined;
    this.canBranch = false;
    this.isFinding = false;
    this.#lost.close();
    this.list?.reset();
    this.#known = undefined;
    this.#compared = "";
    this.#mustReveal = this.turn !== "";
    if (this.contextId) {
      this.#session.begin({ contextId: this.contextId, turn: this.turn });
      const { contextId } = this;
      hasCommand(["chat", "fork"], contextId).then(
        (has) => {
          if (contextId === this.contextId) this.canBranch = has;
        },
        () => undefined,
      );
    } else if (this.taskId) void this.#enter(this.taskId);
  }

  /** Show the task of a subagent alone; lead from another one to its session. */
  async #enter(taskId: string): Promise<void> {
    try {
      const row = this.store.rows.get(taskId) ?? (await getTask(taskId));
      if (taskId !== this.taskId) return;
      if (row.parent) {
        this.#session.begin({ taskId });
        return;
      }
      history.replaceState(null, "", sessionPath(row.contextId, taskId));
      dispatchEvent(new PopStateEvent("popstate"));
    } catch (error) {
      if (taskId === this.taskId) this.problem = problemOf(error);
    }
  }

  /** Ask for the turns again when something of the session has changed. */
  #compare(): void {
    const facts = this.sessions.get(this.contextId);
    const known = this.#factsAsked(facts);
    if (known === this.#compared) return;
    this.#compared = known;
    if (this.#session.session) this.#session.refresh();
  }

  /** Return what tells that the session changed: facts of lists, told changes, and turns that are not shown yet. */
  #factsAsked(facts: SessionFacts | undefined): string {
    const { session } = this.#session;
    const unknown = [...this.store.rows.values()].filter(
      (row) => row.contextId === this.contextId && !session?.tasks.some((turn) => turn.id === row.id),
    );
    const { changed, turns, title, archived } = facts ?? {};
    return [changed, turns, title, archived, this.sessions.told(this.contextId), ...unknown.map(({ id }) => id)].join();
  }

  #reader(): SessionReader {
    return {
      came: () => this.#draw(),
      turned: () => {
        this.#learn();
        this.requestUpdate();
      },
    };
  }

  #learn(): void {
    const { session } = this.#session;
    if (!session || session === this.#known) return;
    this.#known = session;
    this.#compared = this.#factsAsked(session);
    this.sessions.put(session);
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
    this.#lost.failed(this.#session.questions);
    this.requestUpdate();
  };

  #closeLost = (): void => {
    this.#lost.close();
    this.requestUpdate();
  };

  get #fold() {
    return this.#session.fold;
  }

  get #context(): string {
    return this.contextId || (this.#fold.row?.contextId ?? "");
  }

  get #state(): TaskState {
    if (this.#session.questions.length) return "input-required";
    const { name, state } = this.#fold;
    if (state !== "submitted") return state;
    return (
      this.store.rows.get(name)?.state ?? this.#session.turns.find((turn) => turn.id === name)?.state ?? "submitted"
    );
  }

  override render() {
    const fold = this.#fold;
    const session = this.#session.session;
    const row = fold.row ?? this.store.rows.get(fold.name);
    const workspace = session?.workspace ?? row?.workspace ?? "";
    const title = session?.title ?? this.sessions.get(this.contextId)?.title ?? row?.title ?? "";
    const isWorking = !ENDED.has(this.#state) && this.#state !== "input-required";
    const questions = this.#session.questions;
    const lost = this.#lost.calls;
    const asked = lost ?? this.#lost.shown ?? questions[0];
    const open = new Set(questions.flat().map((call) => call.tool_call_id));
    const isOver = ENDED.has(this.#state);
    const isWhole = this.contextId !== "";
    this.#rows = {
      now: this.now,
      workspace,
      asking: open,
      open: this.open,
      set: (key, isOpen) => this.#set(key, isOpen),
      toggle: (item) => void this.#toggle(item),
      rests: isOver && !this.isSending && this.asked === undefined,
      canBranch: this.canBranch && isWhole,
      rewind: (item) => void this.#askRewind(item),
      branch: (item) => void this.#branch(item),
    };
    return html` <main class="pane surface">
        <div class="head">
          ${stateMark(this.#state)}
          <isthmus-title
            .name=${title}
            .given=${session?.given ?? ""}
            ?canRename=${session !== undefined}
            @renamed=${(event: CustomEvent<string>) => void this.#change({ do: "rename", title: event.detail })}
          ></isthmus-title>
          <span class="xs t3 cut wide-only where" dir="auto">${visible(workspace)}</span>
          <span class="right row"
            >${isWhole && fold.name ? html`<a class="b small quiet wide-only" href="${PAGE}diff/${fold.name}">${icon("sides")}${t("sessionDiffShort")} <kbd>d</kbd></a>` : nothing}
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
        ${
          this.isFinding
            ? html`<isthmus-find
                .count=${this.#hits.length}
                .place=${this.#hits.indexOf(this.foundAt) + 1}
                ?isReading=${this.#session.hasEarlier || this.#session.isReading}
                @sought=${(event: CustomEvent<string>) => this.#seek(event.detail)}
                @step=${(event: CustomEvent<1 | -1>) => this.#showFound(event.detail)}
                @closed=${this.#closeFind}
              ></isthmus-find>`
            : nothing
        }
        ${session?.archived ? html`<div class="banner back" role="status">${t("isArchived")} <button class="b small" @click=${() => void this.#change({ do: "restore" })}>${t("unarchive")}</button></div>` : nothing}
        <isthmus-items
          tabindex="0"
          role="log"
          aria-live="off"
          aria-label=${visibleLine(title, 80) || t("sessions")}
          .items=${this.#session.items}
          .draw=${this.#item}
          .found=${this.isFinding ? (this.#session.items[this.foundAt]?.key ?? "") : ""}
          .version=${`${this.version} ${this.now}`}
          @beginning=${() => this.#session.earlier()}
        ></isthmus-items>
        ${this.#banner()}
        ${
          asked
            ? askedCard(
                {
                  calls: asked,
                  open,
                  ...this.#askedIn(asked),
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
          isOver && !questions[0] && !this.asked && isWhole && workspace
            ? html`<isthmus-trust
                class="docked"
                .workspace=${workspace}
                .occasion=${`${fold.name} ${this.#state}`}
                ?takesKeys=${true}
              ></isthmus-trust>`
            : nothing
        }
        <div class="foot">
          <div class="col">
            ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
            ${
              session?.queued.length
                ? html`<isthmus-queued
                    .messages=${session.queued}
                    ?isHeld=${isOver && this.#state !== "completed"}
                    ?isBusy=${this.isSending}
                    @changing=${(event: CustomEvent<Change>) => void this.#change(event.detail)}
                  ></isthmus-queued>`
                : nothing
            }
            <isthmus-prompt
              .hint=${isWorking ? t("promptQueued") : t("promptNext")}
              ?isQueueing=${isWorking}
              ?isBusy=${this.isSending}
              .draftKey=${`draft:${this.#context || this.taskId}`}
              .contextId=${this.#context}
              .draft=${session?.draft ?? ""}
              @drafted=${(event: CustomEvent<string>) => this.#keepDraft(event.detail)}
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
          .folds=${this.#session.folds}
          .store=${this.store}
          .taskId=${fold.name}
          .turn=${isWhole ? this.#session.turns.length : 0}
          .state=${this.#state}
          .more=${session ? this.#menu(session) : nothing}
          .version=${`${this.version} ${this.storeVersion}`}
        ></isthmus-aside>
      </aside>`;
  }

  /** What can be done with the session as a whole. */
  #menu(session: WholeSession) {
    return html`<section class="row">
      <button class="b small" @click=${() => void this.#title()}>${icon("edit")}${t("rename")} <kbd>F2</kbd></button>
      <button class="b small" @click=${() => void this.#change({ do: session.archived ? "restore" : "archive" })}>
        ${icon(session.archived ? "undo" : "archive")}${t(session.archived ? "unarchive" : "archive")}
      </button>
      <button class="b small" @click=${() => this.#openFind()}>${icon("search")}${t("search")} <kbd>/</kbd></button>
    </section>`;
  }

  async #title(): Promise<void> {
    this.hasAside = false;
    await this.querySelector<SessionTitle>("isthmus-title")?.rename();
  }

  /** Change the record of the session; return whether the server has it. */
  async #change(change: Change): Promise<boolean> {
    this.problem = "";
    this.isSending = true;
    try {
      await this.sessions.change(this.contextId, change);
      this.#session.refresh();
      return true;
    } catch (error) {
      this.problem = problemOf(error);
      return false;
    } finally {
      this.isSending = false;
    }
  }

  /** Return the task of the turn that asks, and who answered which of its calls. */
  #askedIn(asked: readonly ToolCall[]): Pick<Asked, "task" | "taskId" | "answers"> {
    const fold = this.#session.askedIn(asked);
    return { task: fold.row ?? this.store.rows.get(fold.name), taskId: fold.name, answers: fold.answers };
  }

  // search

  #openFind(): void {
    this.hasAside = false;
    if (this.isFinding) this.querySelector<FindBar>("isthmus-find")?.write();
    this.isFinding = true;
  }

  #closeFind = (): void => {
    this.isFinding = false;
    this.#sought = "";
    this.#hits = [];
    this.foundAt = -1;
    this.list?.focus({ preventScroll: true });
  };

  #seek(text: string): void {
    this.#sought = text;
    this.foundAt = -1;
    if (text.trim()) this.#session.all();
    this.#foundKey = "";
    this.#find();
  }

  /** Find again what is sought if items came; what was found stays found. */
  #find(): void {
    const { items } = this.#session;
    const known = `${this.#sought} ${items.length} ${items[0]?.key ?? ""} ${this.version}`;
    if (known === this.#hitsOf) return;
    this.#hitsOf = known;
    const key = this.#foundKey;
    this.#hits = findItems(items, this.#sought, this.#session.session?.workspace);
    if (this.foundAt >= 0) this.foundAt = items.findIndex((item) => item.key === key);
    else if (this.#hits.length && this.#sought) this.#showFound(-1);
  }

  #showFound(by: 1 | -1): void {
    const { items } = this.#session;
    const at = this.#hits[nextFound(this.#hits, this.foundAt < 0 ? items.length : this.foundAt, by)] ?? -1;
    const item = items[at];
    this.foundAt = at;
    this.#foundKey = item?.key ?? "";
    if (!item) return;
    if (item.is === "call" && !this.open.has(item.key) && !item.fetched) this.#set(item.key, true);
    else if (item.is === "thought") this.#set(item.key, true);
    this.#mustShowFound = true;
  }

  #item = (item: Item) => rowOfItem(item, this.#rows);

  override updated(): void {
    if (this.#mustReveal) this.#reveal();
    if (this.#mustShowFound) {
      this.#mustShowFound = false;
      if (this.foundAt >= 0) void this.list?.reveal(this.foundAt, false);
    }
  }

  /** Bring the turn that the address names into view once it is there; the newest one is seen at its end. */
  #reveal(): void {
    const { session, turns } = this.#session;
    if (!session) return;
    const id = session.tasks[turnAt(session.tasks, this.turn)]?.id;
    if (id === undefined || id === turns.at(-1)?.id) {
      this.#mustReveal = false;
      return;
    }
    const at = this.#session.itemAt(id);
    if (at < 0) return;
    this.#mustReveal = false;
    void this.list?.reveal(at, false);
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
    const contextId = this.#context;
    if (!contextId || this.isSending) return;
    const queued = this.#session.session?.queued ?? [];
    if (ENDED.has(this.#state) && !queued.length) {
      if (await this.#send(written, contextId)) this.box.clear();
      return;
    }
    if (!this.contextId) {
      this.problem = t("notWhileWorking");
      return;
    }
    // The next message can be written at once; they arrive in order, and one that does not comes back.
    this.box.clear();
    this.#queueing = this.#queueing.then(() => this.#queue(written));
  }

  async #queue({ effort, text, mode, model = "", images }: Written): Promise<void> {
    const wait = (text: string, images: Written["images"]) =>
      this.sessions.change(this.contextId, { do: "queue", id: newId(), text, mode, model, images });
    this.problem = "";
    try {
      if (effort) await wait(`/effort ${effort}`, []);
      await wait(text, images);
      this.#session.refresh();
    } catch (error) {
      this.problem = problemOf(error);
      this.box.putBack(text, images);
    }
  }

  /** Keep what is written and not sent for other devices; what this page has stays, whatever comes of it. */
  #keepDraft(text: string): void {
    const { contextId } = this;
    if (contextId) this.sessions.change(contextId, { do: "draft", text }).catch(() => undefined);
  }

  /** Send a message as the next turn of the session, and show it. */
  async #send(written: Written, contextId: string): Promise<boolean> {
    this.isSending = true;
    this.problem = "";
    try {
      const taskId = await sendWritten(written, { contextId }, this.store);
      this.#show(taskId);
      return true;
    } catch (error) {
      this.problem = problemOf(error);
      return false;
    } finally {
      this.isSending = false;
    }
  }

  /** Show a turn that was begun here: it is the newest one, so that the end of the session is seen. */
  #show(taskId: string): void {
    this.#mustReveal = false;
    this.list?.toEnd();
    if (this.contextId) {
      this.#session.begun(taskId);
      if (this.turn !== "") go(sessionPath(this.contextId));
    } else go(`${PAGE}task/${taskId}`);
  }

  /** Do something that ends at another task, and show it. */
  async #leadOn(begin: () => Promise<string>, show: (taskId: string) => void): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    this.problem = "";
    try {
      const taskId = await begin();
      this.store.refresh();
      show(taskId);
    } catch (error) {
      this.problem = problemOf(error);
    } finally {
      this.isSending = false;
    }
  }

  /** Rewind to a checkpoint. The server asks and names the files, unless everything is allowed: then the page asks. */
  async #askRewind(item: PromptItem | CallItem): Promise<void> {
    const { checkpoint } = item;
    const workspace = this.#session.session?.workspace ?? this.#fold.row?.workspace ?? "";
    if (!this.#context || !checkpoint) return;
    const status = await sessionStatus({ contextId: this.#context }).catch(() => undefined);
    if (status?.mode && status.mode !== "yolo") {
      await this.#rewind(checkpoint);
      return;
    }
    const { folds } = this.#session;
    const from = folds.indexOf(this.#session.foldOf(item));
    const files = new Set(
      folds.slice(from).flatMap((fold) => fold.changedFiles.map((file) => shownPath(file.path, workspace))),
    );
    this.asked = {
      what: item.is === "prompt" ? item.text : factsOf(item.call, workspace).object,
      checkpoint,
      files: [...files],
    };
  }

  async #rewind(checkpoint: string): Promise<void> {
    this.asked = undefined;
    const contextId = this.#context;
    if (contextId)
      await this.#leadOn(
        () => rewind(contextId, checkpoint),
        (taskId) => this.#show(taskId),
      );
  }

  async #branch(item: PromptItem): Promise<void> {
    const { name } = this.#session.foldOf(item);
    const contextId = this.#context;
    const workspace = this.#session.session?.workspace ?? "";
    const begin = () => branch(contextId, name, workspace);
    if (contextId) await this.#leadOn(begin, (taskId) => go(`${PAGE}task/${taskId}`));
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
      const working = this.#session.folds.findLast((fold) => !ENDED.has(fold.state)) ?? this.#fold;
      await cancel(working.name);
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #press = (event: KeyboardEvent): void => {
    if (event.key === "f" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      // The browser searches in what is drawn alone; it does so when the field has the focus already.
      if (document.activeElement?.closest("isthmus-find") || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      this.#openFind();
      return;
    }
    if (!isForPage(event)) return;
    if (event.key === "i") this.box.write();
    else if (event.key === "l") this.box.chooseModel();
    else if (event.key === "/") this.#openFind();
    else if (event.key === "F2") void this.#title();
    else if (event.key === "d" && this.#fold.name) go(`${PAGE}diff/${this.#fold.name}`);
    else if (event.key === "j" || event.key === "k") this.#step(event.key === "j" ? 1 : -1);
    else if (event.key === "z" || event.key === "b") this.#pressFor(event.key);
    else if (event.key === "Escape" && this.#lost.calls) this.#closeLost();
    else if (event.key === "Escape" && this.hasAside) this.hasAside = false;
    else if (event.key === "Escape" && this.isFinding) this.#closeFind();
    else if (event.key === "Escape") {
      if (performance.now() - this.#escapedAt < 600 && !ENDED.has(this.#state)) void this.#stop();
      this.#escapedAt = performance.now();
    } else if (event.key === "r") this.#session.retry();
    else return;
    event.preventDefault();
  };
}
