import { html, nothing } from "lit";
import { customElement, state } from "lit/decorators.js";
import { Announcer } from "./announcer.ts";
import { MARK, icon, stateMark } from "./icons.ts";
import { visibleLine } from "./safe.ts";
import { ReviewStore } from "./reviews.ts";
import { beginInstallation, isOlderThan, reloadFor } from "./installation.ts";
import { ApiError, type Session, api, forget, knowDevice, pair, takeCode, token } from "./session.ts";
import { SessionList, sessionPath, taskStateOf } from "./sessions.ts";
import { TaskStore } from "./store.ts";
import { LANGUAGE, t } from "./words.ts";
import { PageElement, followLink, go } from "./parts/base.ts";
import "./pages/inbox-page.ts";
import "./pages/task-page.ts";
import "./styles/tokens.css";
import "./styles/workbench.css";
import { hasLetters, isForPage, sendKey, setLetters, watchKeys } from "./keys.ts";
import { loadPage } from "./later-pages.ts";
import { PAGE, enterPage } from "./place.ts";
import { type Route, routeOf, titleOf } from "./routes.ts";

enterPage();

/** Number of sessions beside the page. */
const LISTED = 12;
const TICK_MS = 1000;
/** A server that restarts between two requests is noticed after this time. */
const COMPARE_MS = 60_000;
/** Without a tick for this long the page slept. */
const SLEPT_MS = 3000;

@customElement("isthmus-workbench")
export class Workbench extends PageElement {
  @state() private session: Session | undefined;
  @state() private isRefused = false;
  @state() private problem = "";
  @state() private isPairing = false;
  @state() private path = location.pathname;
  @state() private now = Date.now();
  @state() private version = 0;
  @state() private hasKeys = false;
  @state() private isOld = false;
  @state() private said = "";
  /** The keys for what is shown, and the title of the question in view. */
  @state() private keysHere = "";
  #titled = "";
  #announcer = new Announcer((text) => {
    this.said = text;
  });
  #counted = -1;
  #ticked = Date.now();
  #store = new TaskStore();
  #sessions = new SessionList();
  #reviews = new ReviewStore();
  #second = "";
  /** Whether the user went to a page whose heading is still to get the focus. */
  #hasArrived = false;

  override connectedCallback(): void {
    super.connectedCallback();
    document.documentElement.lang = LANGUAGE;
    addEventListener("popstate", () => {
      this.path = location.pathname;
      this.#hasArrived = true;
      this.requestUpdate();
    });
    addEventListener("readdressed", () => {
      this.path = location.pathname;
    });
    watchKeys();
    addEventListener("keyshere", (event) => {
      this.keysHere = (event as CustomEvent<string>).detail;
    });
    addEventListener("titled", (event) => {
      this.#titled = (event as CustomEvent<string>).detail;
      this.#name();
    });
    addEventListener("keydown", this.#press);
    addEventListener("click", followLink);
    setInterval(() => this.#tick(), TICK_MS);
    this.#store.addEventListener("change", () => {
      this.version += 1;
      this.#count();
    });
    this.#sessions.addEventListener("change", () => {
      this.version += 1;
    });
    this.#store.addEventListener("reached", () => void this.#compare());
    setInterval(() => {
      if (!document.hidden && this.session) void this.#compare();
    }, COMPARE_MS);
    if (isSecureContext)
      navigator.serviceWorker?.addEventListener("message", (event: MessageEvent<{ show?: string }>) => {
        if (event.data?.show === PAGE) go(PAGE);
      });
    beginInstallation(() => {
      this.version += 1;
    });
    this.#store.addEventListener("refused", () => this.#refuse());
    this.#reviews.addEventListener("change", () => {
      this.version += 1;
      this.#count();
    });
    this.#reviews.addEventListener("refused", () => this.#refuse());
    void this.#enter();
  }

  #tick(): void {
    const now = Date.now();
    if (now - this.#ticked > SLEPT_MS && !document.hidden) {
      this.#store.renew();
      this.#reviews.renew();
      dispatchEvent(new Event("slept"));
    }
    this.#ticked = now;
    if (!document.hidden) this.now = now;
  }

  async #enter(): Promise<void> {
    const code = takeCode();
    if (code) {
      await this.#pair(code);
      return;
    }
    if (!token()) {
      this.isRefused = true;
      return;
    }
    try {
      const session = await api<Session>("GET", "session");
      if (isOlderThan(session.entry) && reloadFor(session.entry)) return;
      knowDevice(session);
      this.session = session;
      this.isRefused = false;
      if (this.session.tasks) {
        this.#store.start();
        this.#sessions.start(this.#store);
      }
      if (this.session.reviews) this.#reviews.start();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.#refuse();
      else {
        this.problem = t("noReach");
        setTimeout(() => void this.#enter(), 3000);
      }
    }
  }

  async #pair(code: string): Promise<void> {
    this.isPairing = true;
    this.problem = "";
    try {
      await pair(code);
    } catch (error) {
      // A link that was used before does no harm to a browser that is let in already.
      if (token()) {
        this.isPairing = false;
        await this.#enter();
        return;
      }
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 300) : t("noReach");
      this.isRefused = true;
      return;
    } finally {
      this.isPairing = false;
    }
    await this.#enter();
  }

  /** After a lost connection: the server may be another version. What is typed stays until the user reloads. */
  async #compare(): Promise<void> {
    const session = await api<Session>("GET", "session").catch(() => undefined);
    if (!session) return;
    this.session = session;
    this.isOld = isOlderThan(session.entry);
  }

  #refuse(): void {
    forget();
    this.session = undefined;
    this.problem = t("pairAgain");
    this.isRefused = true;
  }

  get #route(): Route {
    return routeOf(this.path.slice(PAGE.length));
  }

  get #waiting(): number {
    return this.#store.questions.length + this.#reviews.waiting.length;
  }

  get #isReached(): boolean {
    return this.#store.isReached && (this.session?.tasks === true || this.#reviews.isReached);
  }

  /** Give the document the title of its page. */
  #name(): void {
    const { name, id, session } = this.#route;
    const task = this.#store.rows.get(id);
    const about = session ? this.#sessions.get(session.contextId)?.title : task && this.#sessions.titleOf(task);
    const title = this.session ? titleOf(name, about ?? "", this.#waiting, this.#titled) : "Isthmus";
    if (document.title !== title) document.title = title;
  }

  #count(): void {
    const count = this.#waiting;
    if (this.#store.isLoaded && count !== this.#counted) {
      if (this.#counted >= 0 || count > 0) this.#announcer.announce(count ? t("wait", count) : t("nothingWaits"));
      this.#counted = count;
    }
    this.#name();
    const counting = navigator as Navigator & {
      setAppBadge?: (count: number) => Promise<void>;
      clearAppBadge?: () => Promise<void>;
    };
    void (count ? counting.setAppBadge?.(count) : counting.clearAppBadge?.())?.catch(() => undefined);
  }

  override render() {
    if (this.session) return this.#frame(this.session);
    if (this.isRefused) return this.#door();
    return html`<div class="door">
      <p role="status">${this.problem || t(this.isPairing ? "pairing" : "connecting")}</p>
    </div>`;
  }

  #door() {
    return html`<main class="door">
      <form
        @submit=${(event: SubmitEvent) => {
          event.preventDefault();
          void this.#pair((new FormData(event.target as HTMLFormElement).get("code") as string) ?? "");
        }}
      >
        <p class="brand">${MARK}Isthmus</p>
        <h1>${t("pairTitle")}</h1>
        <p class="t2">${t("pairText")}</p>
        ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
        <label
          >${t("code")}
          <input
            class="field code"
            name="code"
            required
            autocomplete="one-time-code"
            autocapitalize="characters"
            spellcheck="false"
            maxlength="60"
        /></label>
        <button class="b primary" ?disabled=${this.isPairing}>${this.isPairing ? t("pairing") : t("letIn")}</button>
      </form>
    </main>`;
  }

  #frame(session: Session) {
    const count = this.#waiting;
    const { name, id, session: shown } = this.#route;
    const page = name === "session" ? "task" : name;
    // An element that is drawn before its page has come would begin without what it shows.
    const isHere = loadPage(page, () => this.requestUpdate());
    loadPage("cards", () => this.requestUpdate());
    const link = (path: string, name: string, words: string, symbol: Parameters<typeof icon>[0], badge = 0) =>
      html` <a href=${path} class=${page === name ? "on" : ""} aria-current=${page === name ? "page" : nothing}
        >${icon(symbol)}<span>${words}</span>${badge ? html`<span class="count" aria-label=${t("wait", badge)}>${badge}</span>` : nothing}</a
      >`;
    return html`<div
        class="frame ${page === "inbox" || page === "files" ? "with-list" : page === "task" ? "with-aside" : page === "written" ? "with-turns" : ""}"
      >
        <nav class="nav" aria-label="Isthmus">
          <div class="brand">${MARK}<span>Isthmus</span></div>
          ${link(PAGE, "inbox", t("inbox"), "inbox", count)}
          ${this.#reviews.filePages.length || page === "files" ? link(`${PAGE}files`, "files", t("files"), "file") : nothing}
          ${
            session.tasks
              ? html`${link(`${PAGE}history`, "history", t("history"), "history")}
                  <a
                    href="${PAGE}new"
                    class="narrow-only ${page === "new" ? "on" : ""}"
                    aria-current=${page === "new" ? "page" : nothing}
                    >${icon("plus")}<span>${t("newSession")}</span></a
                  >
                  <h2 class="wide-only">${t("sessions")}</h2>
                  ${this.#sessions.sessions
                    .slice(0, LISTED)
                    .map(
                      ({ contextId, title, state }) =>
                        html`<a
                          href=${sessionPath(contextId)}
                          class="task wide-only ${contextId === shown?.contextId ? "on" : ""}"
                          aria-current=${contextId === shown?.contextId ? "page" : nothing}
                          >${stateMark(taskStateOf(state))}<span class="cut" dir="auto"
                            >${visibleLine(title, 60) || contextId}</span
                          ></a
                        >`,
                    )}
                  <a
                    href="${PAGE}new"
                    class="task wide-only ${page === "new" ? "on" : ""}"
                    aria-current=${page === "new" ? "page" : nothing}
                    >${icon("plus")}<span class="grow">${t("newSession")}</span><kbd>c</kbd></a
                  >`
              : nothing
          }
          <span class="grow wide-only"></span>
          ${session.tasks ? link(`${PAGE}tools`, "tools", t("toolsNav"), "plug") : nothing}
          ${session.user || !session.tasks ? nothing : link(`${PAGE}settings`, "settings", t("settings"), "settings")}
          ${link(`${PAGE}devices`, "devices", session.user || t("devices"), "device")}
        </nav>
        ${
          !isHere
            ? html`<main class="pane surface span"><p class="empty" role="status">${t("connecting")}</p></main>`
            : page === "inbox"
              ? html`<isthmus-inbox
                  .address=${id}
                  .sessions=${this.#sessions}
                  .store=${this.#store}
                  .reviews=${this.#reviews}
                  .now=${this.now}
                  .version=${this.version}
                  .agent=${session.agent}
                ></isthmus-inbox>`
              : page === "history"
                ? html`<isthmus-history
                    .store=${this.#store}
                    .list=${this.#sessions}
                    .now=${this.now}
                    .version=${this.version}
                  ></isthmus-history>`
                : page === "diff"
                  ? html`<isthmus-session-diff .taskId=${id}></isthmus-session-diff>`
                  : page === "written"
                    ? html`<isthmus-written
                        .companion=${id}
                        .reviews=${this.#reviews}
                        .version=${this.version}
                      ></isthmus-written>`
                    : page === "files"
                      ? html`<isthmus-files .reviews=${this.#reviews} .version=${this.version}></isthmus-files>`
                      : page === "devices"
                        ? html`<isthmus-devices .now=${this.now}></isthmus-devices>`
                        : page === "tools"
                          ? html`<isthmus-tools .session=${session}></isthmus-tools>`
                          : page === "settings"
                            ? html`<isthmus-settings></isthmus-settings>`
                            : page === "new"
                              ? html`<isthmus-new .store=${this.#store} .session=${session}></isthmus-new>`
                              : html`<isthmus-task
                                  .contextId=${shown?.contextId ?? ""}
                                  .turn=${shown?.turn ?? ""}
                                  .taskId=${name === "task" ? id : ""}
                                  .store=${this.#store}
                                  .sessions=${this.#sessions}
                                  .now=${this.now}
                                  .storeVersion=${this.version}
                                  .agent=${session.agent}
                                ></isthmus-task>`
        }
        <footer class="status">
          <span class="row" role="status"
            ><span class=${this.#isReached ? "live" : "lost"}></span
            >${this.#isReached ? t("connected") : t("offline")}</span
          >
          ${this.isOld ? html`<button class="b small" @click=${() => location.reload()}>${t("newerPage")}</button>` : nothing}
          ${page === "written" && hasLetters() ? html`<span class="wide-only">${t("keysOfWritten")}</span>` : nothing}
          ${this.keysHere && page !== "written" ? html`<span class="wide-only cut">${this.keysHere}</span>` : nothing}
          <span class="grow"></span><span>${session.agent} ${session.version}</span>
          <button
            class="b quiet small wide-only"
            @click=${() => {
              this.hasKeys = true;
            }}
          >
            <kbd>?</kbd>${t("keys")}
          </button>
        </footer>
        <div class="vh" role="status" id="said">${this.said}</div>
      </div>
      ${this.hasKeys ? this.#keys() : nothing}`;
  }

  override updated(): void {
    this.#name();
    if (this.#hasArrived) void this.#arrive();
    const keys = this.querySelector<HTMLDialogElement>("dialog.sheet");
    if (keys && !keys.open) keys.showModal();
  }

  /** Give the focus to the heading of the page that was gone to, unless the page has it: a screen reader goes on there. */
  async #arrive(): Promise<void> {
    await this.querySelector<PageElement>(".frame > :nth-child(2)")?.updateComplete;
    const main = this.querySelector("main");
    const heading = main?.querySelector("h1");
    // A page that comes later has none yet.
    if (!main || !heading || !this.#hasArrived) return;
    this.#hasArrived = false;
    if (main.contains(document.activeElement)) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }

  #keys() {
    const all: [string, string][] = [
      ["g i", t("keyInbox")],
      ["g h", t("keyHistory")],
      ["g s", t("keyTools")],
      ["j k", t("keyNext")],
      ["y", t("keyAllow")],
      ["1\u20139", t("keyOptions")],
      ["n", t("keyReject")],
      ["t", t("keyTell")],
      ["e", t("keyEdit")],
      ["v", t("keyView")],
      [sendKey(), t("keySend")],
      ["[ ]", t("keyHunk")],
      ["[ ]", t("keyFile")],
      ["space", t("keyUnseen")],
      ["a x u", t("keyHunks")],
      ["m M", t("keyComment")],
      ["A", t("keyAll")],
      ["c", t("keyNew")],
      ["i", t("keyPrompt")],
      ["l", t("keyModel")],
      ["d", t("keyDiff")],
      ["z", t("keyRewind")],
      ["b", t("keyBranch")],
      ["/", t("keyFind")],
      ["F2", t("keyRename")],
      ["esc esc", t("keyStop")],
    ];
    if (this.#reviews.filePages.length)
      all.push(["g f", t("keyFiles")], ["/", t("keySearch")], ["m", t("keyMention")], ["x", t("keyLeave")]);
    if (this.#reviews.written.length) {
      all.push(
        ["g w", t("keyWritten")],
        ["a x u", t("keyWrittenHunks")],
        ["J K", t("keyWrittenTurns")],
        ["A", t("keyWrittenKeep")],
        ["⌘↵", t("keyWrittenSend")],
      );
    }
    const rows = all.filter(
      ([key]) => this.session?.tasks || !["g h", "g s", "c", "i", "l", "d", "z", "b", "F2", "esc esc"].includes(key),
    );
    return html`<dialog
      class="sheet"
      aria-label=${t("keysList")}
      @close=${() => {
        this.hasKeys = false;
      }}
    >
      <h2>${t("keysList")}</h2>
      <dl class="facts">
        ${rows.map(
          ([key, what]) =>
            html`<dt><kbd>${key}</kbd></dt>
              <dd>${what}</dd>`,
        )}
      </dl>
      <label class="row sm"
        ><input
          type="checkbox"
          .checked=${hasLetters()}
          @change=${(event: Event) => setLetters((event.target as HTMLInputElement).checked)}
        />
        ${t("keyLetters")}</label
      >
      <form method="dialog"><button class="b">${t("close")}</button></form>
    </dialog>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (!this.session || !isForPage(event)) return;
    const first = this.#second;
    this.#second = "";
    if (first === "g" && event.key === "i") go(PAGE);
    else if (first === "g" && event.key === "h" && this.session.tasks) go(`${PAGE}history`);
    else if (first === "g" && event.key === "f" && this.#reviews.filePages.length) go(`${PAGE}files`);
    else if (first === "g" && event.key === "w" && this.#reviews.written[0])
      go(`${PAGE}written/${this.#reviews.written[0].id}`);
    else if (first === "g" && event.key === "s" && this.session.tasks) go(`${PAGE}tools`);
    else if (event.key === "g") this.#second = "g";
    else if (event.key === "c" && this.session.tasks) go(`${PAGE}new`);
    else if (event.key === "?") this.hasKeys = true;
    else return;
    event.preventDefault();
  };
}
