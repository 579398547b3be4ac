import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { cancel, getTask, hasCommand } from "../client.ts";
import { Action } from "../conversation/action.ts";
import { archivedBanner, connectionBanner } from "../conversation/banners.ts";
import { ChosenPrompt } from "../conversation/chosen-prompt.ts";
import { Drawing } from "../conversation/drawing.ts";
import { Finder } from "../conversation/finder.ts";
import { type HeadActions, sessionHead, sessionMenu } from "../conversation/head.ts";
import { sessionFoot } from "../conversation/foot.ts";
import { Freshness } from "../conversation/freshness.ts";
import { OpenItems } from "../conversation/open-items.ts";
import { Questions, type QuestionsPage } from "../conversation/questions.ts";
import { Rewinds } from "../conversation/rewinds.ts";
import { MessageWriter } from "../conversation/writer.ts";
import "../styles/session.css";
import "../styles/timeline.css";
import { isForPage } from "../frame/keys.ts";
import { PageElement, go } from "../parts/base.ts";
import type { FindBar } from "../parts/rows/find-bar.ts";
import type { ItemList } from "../parts/rows/item-list.ts";
import "../parts/rows/item-list.ts";
import type { PromptBox } from "../parts/prompt/prompt-box.ts";
import type { SessionTitle } from "../parts/rows/session-title.ts";
import "../parts/rows/task-aside.ts";
import { type Rows, rowOfItem } from "../parts/rows/task-rows.ts";
import { nowhere } from "../frame/nowhere.ts";
import { f } from "../frame/words.ts";
import { PAGE } from "../place.ts";
import { ENDED, type TaskState } from "../server/protocol.ts";
import { isNotThere } from "../server/session.ts";
import { visibleLine } from "../text/safe.ts";
import { StatusReader } from "../server/session-status.ts";
import { type SessionReader, SessionStream } from "../conversation/session-stream.ts";
import { type Change, type SessionList, sessionPath, taskStateOf, turnAt } from "../server/sessions.ts";
import type { TaskStore } from "../server/store.ts";
import { childOf } from "../task/subagents.ts";
import type { Item } from "../task/task-fold.ts";
import { isBack, rename } from "../visits.ts";
import { t } from "../words.ts";

/** A session: the conversation of its turns in order, live, with its questions and a box for the next message. */
@customElement("isthmus-task")
export class TaskPage extends PageElement implements QuestionsPage {
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
  @state() private hasAside = false;
  @state() private version = 0;
  @state() private canBranch = false;
  @query("isthmus-items") list: ItemList | null | undefined;
  @query("isthmus-prompt") private box!: PromptBox;
  readonly stream = new SessionStream(this.#reader());
  readonly action = new Action(() => this.requestUpdate());
  readonly #freshness = new Freshness(this);
  readonly #writer = new MessageWriter(this);
  #endColours = (): void => undefined;
  readonly #rewinds = new Rewinds(this);
  readonly #questions: Questions = new Questions(this);
  readonly #open = new OpenItems(
    this.stream,
    () => this.redraw(),
    (error) => this.action.fail(error),
  );
  readonly #finder = new Finder(this.stream, {
    requestUpdate: () => this.requestUpdate(),
    unfold: (item) => this.#unfold(item),
    closed: () => this.#closeFind(),
  });
  readonly #prompts = new ChosenPrompt(() => this.stream.items);
  readonly #drawing = new Drawing(async () => {
    this.redraw();
    await this.updateComplete;
    await this.list?.updateComplete;
  });
  #status = new StatusReader(() => this.requestUpdate());
  #rows!: Rows;
  /** Whether the turn that the address names is still to be brought into view. */
  #mustReveal = false;
  #escapedAt = -Infinity;

  /** Whether the address names a task that the server does not have. */
  @state() private isNowhere = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    this.stream.attach();
    this.#questions.attach();
    void import("../parts/rows/row-extras.ts").then(
      ({ colourFences }) => {
        if (this.isConnected) this.#endColours = colourFences(this);
      },
      () => undefined, // without a connection
    );
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.stream.detach();
    this.#questions.detach();
    this.#endColours();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("contextId") || changed.has("taskId")) this.#begin();
    else if (changed.has("turn")) this.#mustReveal = this.turn !== "" && !isBack();
    this.#questions.take();
    if (changed.has("now")) this.stream.tick();
    if (changed.has("storeVersion")) this.#freshness.compare();
    // It changes at the ends of turns.
    const rests = ENDED.has(this.state) || this.state === "input-required";
    if (this.context && rests && this.#fold.name)
      this.#status.look(
        { contextId: this.context },
        `${this.#fold.name} ${this.state} ${this.stream.questions.length}`,
      );
    this.#finder.look(this.version);
  }

  #begin(): void {
    this.isNowhere = false;
    this.action.say("");
    this.#rewinds.close();
    this.canBranch = false;
    this.#finder.close();
    this.#questions.reset();
    this.list?.reset();
    this.#freshness.reset();
    this.#mustReveal = this.turn !== "" && !isBack();
    if (this.contextId) {
      this.stream.begin({ contextId: this.contextId, turn: this.turn });
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
        this.stream.begin({ taskId });
        return;
      }
      rename(sessionPath(row.contextId, taskId));
      dispatchEvent(new PopStateEvent("popstate"));
    } catch (error) {
      if (taskId !== this.taskId) return;
      if (isNotThere(error)) this.isNowhere = true;
      else this.action.fail(error);
    }
  }

  #reader(): SessionReader {
    return {
      came: () => this.#drawing.soon(),
      turned: () => {
        this.#freshness.learn();
        this.requestUpdate();
      },
    };
  }

  redraw(): void {
    this.version += 1;
  }

  get #fold() {
    return this.stream.fold;
  }

  get context(): string {
    return this.contextId || (this.#fold.row?.contextId ?? "");
  }

  get state(): TaskState {
    return this.#state ?? "submitted";
  }

  get isKnown(): boolean {
    return this.#state !== undefined;
  }

  get #state(): TaskState | undefined {
    const facts = this.#fold.name ? undefined : this.sessions.get(this.contextId);
    return this.stream.stateOf(facts ? taskStateOf(facts) : this.store.rows.get(this.#fold.name)?.state);
  }

  override render() {
    if (this.isNowhere || (this.stream.stream.is === "failed" && !this.stream.session && this.contextId))
      return nowhere(t("noSession"), t("noSessionText"), { path: `${PAGE}history`, words: f("toHistory") });
    const fold = this.#fold;
    const session = this.stream.session;
    const row = fold.row ?? this.store.rows.get(fold.name);
    const workspace = session?.workspace ?? row?.workspace ?? "";
    const title = session?.title ?? this.sessions.get(this.contextId)?.title ?? row?.title ?? "";
    const isOver = ENDED.has(this.state);
    const isWhole = this.contextId !== "";
    this.#rows = {
      now: this.now,
      lostAt: this.stream.stream.is === "waiting" ? this.stream.lostAt : 0,
      workspace,
      asking: this.#questions.openIds,
      open: this.#open.keys,
      set: (key, isOpen) => this.#open.set(key, isOpen),
      toggle: (item) => void this.#open.toggle(item),
      rests: isOver && !this.action.isUnderWay && this.#rewinds.asked === undefined,
      canBranch: this.canBranch && isWhole,
      rewind: (item) => void this.#rewinds.ask(item),
      branch: (item) => void this.#rewinds.branch(item),
      last: this.stream.items.at(-1),
      again: (item) => void this.#writer.again(item.again),
      childOf: ({ call, key }) => childOf(call, this.store.childrenOf(key.split("/c:", 1)[0] ?? "")),
      stop: (taskId) => void this.#stop(taskId),
    };
    return html` <main class="pane surface">
        ${sessionHead(
          {
            state: this.#state,
            isLost: this.stream.stream.is === "waiting",
            agent: this.agent,
            title,
            workspace,
            session,
            diffOf: isWhole ? fold.name : "",
            hasAside: this.hasAside,
          },
          this.#actions,
        )}
        ${this.#finder.bar()}
        ${session?.archived ? archivedBanner(() => void this.#change({ do: "restore" })) : nothing}
        <isthmus-items
          tabindex="0"
          role="log"
          aria-live="off"
          aria-label=${visibleLine(title, 80) || t("sessions")}
          .items=${this.stream.items}
          .draw=${this.#item}
          .waiting=${this.#questions.waiting}
          .found=${this.#finder.key}
          .version=${`${this.version} ${this.now}`}
          @moved=${this.#questions.look}
          @focusin=${this.#questions.look}
          @focusout=${this.#questions.look}
          @beginning=${() => this.stream.earlier()}
        ></isthmus-items>
        ${this.#questions.pill()} ${connectionBanner(this.stream, this.now)}
        ${this.#rewinds.card(() => this.list?.focus())}
        ${
          isOver && !this.#questions.waiting && !this.#rewinds.asked && isWhole && workspace
            ? html`<isthmus-trust
                class="docked"
                .workspace=${workspace}
                .occasion=${`${fold.name} ${this.state}`}
                ?takesKeys=${true}
              ></isthmus-trust>`
            : nothing
        }
        ${sessionFoot(this, this.#status.status, `draft:${this.context || this.taskId}`, {
          change: (change) => void this.#change(change),
          drafted: (text) => this.#writer.keepDraft(text),
          write: (written) => void this.#writer.write(written, this.box),
        })}
      </main>
      <aside id="aside" tabindex="0" class="aside ${this.hasAside ? "open" : ""}" aria-label=${t("details")}>
        <isthmus-aside
          .status=${this.#status.status}
          .fold=${fold}
          .folds=${this.stream.folds}
          .store=${this.store}
          .taskId=${fold.name}
          .turn=${isWhole ? this.stream.turns.length : 0}
          .state=${this.state}
          ?isKnown=${this.isKnown}
          ?isLost=${this.stream.stream.is === "waiting"}
          .now=${this.now}
          .more=${session ? sessionMenu(session, this.#actions) : nothing}
          .version=${`${this.version} ${this.storeVersion}`}
        ></isthmus-aside>
      </aside>`;
  }

  get #actions(): HeadActions {
    return {
      change: (change) => void this.#change(change),
      stop: () => void this.#stop(),
      turnAside: () => {
        this.hasAside = !this.hasAside;
      },
      rename: () => void this.#title(),
      find: () => this.#openFind(),
    };
  }

  async #title(): Promise<void> {
    this.hasAside = false;
    await this.querySelector<SessionTitle>("isthmus-title")?.rename();
  }

  /** Change the record of the session. */
  async #change(change: Change): Promise<void> {
    await this.action.run(async () => {
      await this.sessions.change(this.contextId, change);
      this.stream.refresh();
    });
  }

  // search

  #openFind(): void {
    this.hasAside = false;
    if (this.#finder.isOpen) this.querySelector<FindBar>("isthmus-find")?.write();
    this.#finder.open();
  }

  #closeFind(): void {
    this.#finder.close();
    this.list?.focus({ preventScroll: true });
  }

  #unfold(item: Item): void {
    if (item.is === "thought" || (item.is === "call" && !item.fetched)) this.#open.set(item.key, true);
  }

  #item = (item: Item) => this.#questions.cardAt(item) ?? rowOfItem(item, this.#rows);

  override updated(): void {
    this.#questions.leadOn();
    if (this.#mustReveal) this.#reveal();
    const found = this.#finder.takeShown();
    if (found >= 0) void this.list?.reveal(found, false);
  }

  /** Bring the turn that the address names into view once it is there; the newest one is seen at its end. */
  #reveal(): void {
    const { session, turns } = this.stream;
    if (!session) return;
    const id = session.tasks[turnAt(session.tasks, this.turn)]?.id;
    if (id === undefined || id === turns.at(-1)?.id) {
      this.#mustReveal = false;
      return;
    }
    const at = this.stream.itemAt(id);
    if (at < 0) return;
    this.#mustReveal = false;
    void this.list?.reveal(at, false);
  }

  /** Show a turn that was begun here: it is the newest one, so that the end of the session is seen. */
  show(taskId: string): void {
    this.#mustReveal = false;
    this.list?.toEnd();
    if (this.contextId) {
      this.stream.begun(taskId);
      if (this.turn !== "") go(sessionPath(this.contextId));
    } else go(`${PAGE}task/${taskId}`);
  }

  /** Stop the turn that works, or the task of a subagent alone. */
  async #stop(taskId = ""): Promise<void> {
    try {
      const working = this.stream.folds.findLast((fold) => !ENDED.has(fold.state)) ?? this.#fold;
      await cancel(taskId || working.name);
    } catch (error) {
      this.action.fail(error);
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
    if (this.#takes(event.key)) event.preventDefault();
  };

  /** Take a key for the page; return whether it stands for something. */
  #takes(key: string): boolean {
    if (key === "i") this.box.write();
    else if (key === "l") this.box.chooseModel();
    else if (key === "/") this.#openFind();
    else if (key === "F2") void this.#title();
    else if (key === "d" && this.#fold.name) go(`${PAGE}diff/${this.#fold.name}`);
    else if (key === "j" || key === "k") this.#prompts.step(key === "j" ? 1 : -1, this.list);
    else if (key === "z" || key === "b") this.#prompts.press(key, this.#rows);
    else if (key === ".") return this.#questions.go();
    else if (key === "Escape" && this.#questions.close()) return true;
    else if (key === "Escape" && this.hasAside) this.hasAside = false;
    else if (key === "Escape" && this.#finder.isOpen) this.#closeFind();
    else if (key === "Escape") {
      if (performance.now() - this.#escapedAt < 600 && !ENDED.has(this.state)) void this.#stop();
      this.#escapedAt = performance.now();
    } else if (key === "r") this.stream.retry();
    else return false;
    return true;
  }
}
