import { html, nothing } from "lit";
import { customElement, state } from "lit/decorators.js";
import { Announcer } from "./frame/announcer.ts";
import { Access } from "./frame/access.ts";
import { AnsweredElsewhere } from "./frame/answered-elsewhere.ts";
import { type Figures, TodaysUse, hearFigures } from "./frame/figures.ts";
import { door } from "./frame/door.ts";
import { type Has, keysLine, placesOn } from "./frame/key-table.ts";
import { navigation } from "./frame/navigation.ts";
import { shownPage } from "./frame/shown-page.ts";
import { statusLine } from "./frame/status-line.ts";
import { Toasts, endsIn, keepOffAnswers, toastList } from "./frame/toasts.ts";
import { ReviewStore } from "./server/reviews.ts";
import { beginInstallation } from "./frame/installation.ts";
import type { Session } from "./server/session.ts";
import { type SessionFacts, SessionList } from "./server/sessions.ts";
import { factsOf } from "./questions/question.ts";
import type { TaskRow } from "./server/protocol.ts";
import { type Question, TaskStore } from "./server/store.ts";
import { LANGUAGE } from "./language.ts";
import { t } from "./words.ts";
import { PageElement, followLink, go } from "./parts/base.ts";
import "./pages/inbox-page.ts";
import "./styles/tokens.css";
import "./styles/workbench.css";
import "./styles/access.css";
import "./styles/frame.css";
import "./styles/phone.css";
import { hasLetters, isForPage, watchKeys } from "./frame/keys.ts";
import { loadPage } from "./later-pages.ts";
import { PAGE, enterPage } from "./place.ts";
import { watchKeyboard } from "./phone/keyboard.ts";
import { type Route, routeOf, titleOf } from "./routes.ts";
import { beginVisits, comeBack } from "./visits.ts";

enterPage();
beginVisits();

const TICK_MS = 1000;
/** A server that restarts between two requests is noticed after this time. */
const COMPARE_MS = 60_000;
/** Without a tick for this long the page slept. */
const SLEPT_MS = 3000;

@customElement("isthmus-workbench")
export class Workbench extends PageElement {
  @state() private path = location.pathname;
  @state() private now = Date.now();
  @state() private version = 0;
  /** The dialog of the frame that is open. */
  @state() private dialog: "keys" | "palette" | "" = "";
  @state() private said = "";
  /** The keys for what is shown, and the title of the question in view. */
  @state() private keysHere = "";
  @state() private figures: Figures | undefined;
  #titled = "";
  #today = new TodaysUse(() => this.requestUpdate());
  #toasts = new Toasts(() => this.requestUpdate());
  #answered = new AnsweredElsewhere((toast) => this.#toasts.add(toast));
  /** The sessions as they were when the last message about them was due. */
  #before: readonly SessionFacts[] | undefined;
  #announcer = new Announcer((text) => {
    this.said = text;
  });
  #counted = -1;
  #ticked = Date.now();
  #access = new Access();
  #store = new TaskStore();
  #sessions = new SessionList();
  #reviews = new ReviewStore();
  #second = "";
  /** Whether the user went to a page whose heading is still to get the focus. */
  #hasArrived = false;

  override connectedCallback(): void {
    super.connectedCallback();
    document.documentElement.lang = LANGUAGE;
    this.#listen();
    this.#follow();
    void this.#access.enter();
  }

  #listen(): void {
    addEventListener("popstate", (event) => {
      if (event.isTrusted) comeBack(event.state);
      this.path = location.pathname;
      this.#hasArrived = true;
      this.requestUpdate();
    });
    addEventListener("readdressed", () => {
      this.path = location.pathname;
    });
    watchKeys();
    watchKeyboard();
    addEventListener("keyshere", (event) => {
      this.keysHere = (event as CustomEvent<string>).detail;
    });
    hearFigures((figures) => {
      this.figures = figures;
    });
    addEventListener("titled", (event) => {
      this.#titled = (event as CustomEvent<string>).detail;
      this.#name();
    });
    addEventListener("keydown", this.#press);
    addEventListener("click", followLink);
    setInterval(() => this.#tick(), TICK_MS);
    setInterval(() => {
      if (!document.hidden && this.#access.session) void this.#access.compare();
    }, COMPARE_MS);
    if (isSecureContext)
      navigator.serviceWorker?.addEventListener("message", (event: MessageEvent<{ show?: string }>) => {
        const show = event.data?.show;
        if (show === PAGE || show?.startsWith(`${PAGE}question/`)) go(show);
      });
    beginInstallation(() => {
      this.version += 1;
    });
  }

  /** Draw what the stores tell, and leave when the server refuses this browser. */
  #follow(): void {
    this.#access.addEventListener("change", () => this.requestUpdate());
    this.#access.addEventListener("entered", () => this.#start());
    this.#sessions.addEventListener("change", () => {
      this.version += 1;
      this.#tellEnds();
    });
    this.#store.addEventListener("reached", () => void this.#access.compare());
    for (const store of [this.#store, this.#reviews]) {
      store.addEventListener("change", () => {
        this.version += 1;
        this.#count();
        this.#tellAnswers();
      });
      store.addEventListener("refused", () => this.#access.refuse());
    }
  }

  #start(): void {
    const { session } = this.#access;
    if (session?.tasks) {
      this.#store.start();
      this.#sessions.start(this.#store);
    }
    if (session?.reviews) this.#reviews.start();
  }

  /** Say which sessions have ended that are not in view. */
  #tellEnds(): void {
    const { sessions, isLoaded } = this.#sessions;
    if (!isLoaded) return;
    const shown = this.#route.session?.contextId ?? "";
    for (const toast of endsIn(this.#before ?? sessions, sessions, shown)) this.#toasts.add(toast);
    this.#before = sessions;
  }

  /** Say what was answered elsewhere, unless the page shows it. */
  #tellAnswers(): void {
    const { name, session } = this.#route;
    const isInbox = name === "inbox";
    if (this.#store.isLoaded)
      this.#answered.takeQuestions(
        this.#store.questions,
        ({ task }) => isInbox || task.contextId === session?.contextId,
      );
    if (this.#reviews.isLoaded)
      this.#answered.takeReviews(
        this.#reviews.waiting,
        (key) => this.#reviews.outcome(key),
        () => isInbox,
      );
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

  get #route(): Route {
    return routeOf(this.path.slice(PAGE.length));
  }

  get #waiting(): number {
    return this.#store.questions.length + this.#reviews.waiting.length;
  }

  get #isReached(): boolean {
    return this.#store.isReached && (this.#access.session?.tasks === true || this.#reviews.isReached);
  }

  /** Give the document the title of its page, with the question in view. */
  #name(): void {
    const { name, id, session } = this.#route;
    const task = this.#store.rows.get(id);
    const question = this.#question;
    const about = session
      ? this.#sessions.get(session.contextId)?.title
      : (task ?? question?.task) && this.#sessions.titleOf((task ?? question?.task) as TaskRow);
    const asked = this.#titled || (question ? askedIn(question) : "");
    const title = this.#access.session
      ? titleOf(name, { about: about ?? "", waiting: this.#waiting, asked })
      : "Isthmus";
    if (document.title !== title) document.title = title;
  }

  /** The question of a task that is in view, by the address or as the one of the session. */
  get #question(): Question | undefined {
    const { name, id, session } = this.#route;
    if (name === "inbox")
      return id ? this.#store.questions.find(({ task, call }) => `${task.id}/${call.tool_call_id}` === id) : undefined;
    return session && this.#store.questions.find(({ task }) => task.contextId === session.contextId);
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
    const { session } = this.#access;
    return session ? this.#frame(session) : door(this.#access);
  }

  #frame(session: Session) {
    const route = this.#route;
    const page = route.name === "session" ? "task" : route.name;
    // An element that is drawn before its page has come would begin without what it shows.
    const isHere = loadPage(page, () => this.requestUpdate());
    if (page === "inbox" && session.tasks) this.#today.look(this.now);
    for (const later of ["cards", "task"]) loadPage(later, () => this.requestUpdate());
    return html`<div
        class="frame ${page === "inbox" || page === "files" ? "with-list" : page === "task" ? "with-aside" : page === "written" ? "with-turns" : ""}"
      >
        ${navigation({
          session,
          page,
          waiting: this.#waiting,
          hasFiles: this.#reviews.filePages.length > 0,
          sessions: this.#sessions.sessions,
          isReached: this.#isReached,
          contextId: route.session?.contextId,
        })}
        ${
          isHere
            ? shownPage({
                route,
                session,
                store: this.#store,
                sessions: this.#sessions,
                reviews: this.#reviews,
                now: this.now,
                version: this.version,
              })
            : html`<main class="pane surface span"><p class="empty" role="status">${t("connecting")}</p></main>`
        }
        ${statusLine({
          isReached: this.#isReached,
          isOld: this.#access.isOld,
          keys: hasLetters() ? this.keysHere || keysLine(this.#places(page), this.#has(session)) : "",
          figures: this.figures,
          today: page === "inbox" ? this.#today.today : undefined,
          agent: `${session.agent} ${session.version}`,
          showKeys: () => {
            this.dialog = "keys";
          },
        })}
        <div class="vh" role="status" id="said">${this.said}</div>
      </div>
      ${toastList(this.#toasts)}
      ${this.dialog && loadPage(this.dialog, () => this.requestUpdate()) ? this.#dialogOf(session, page) : nothing}`;
  }

  #has(session: Session): Has {
    return {
      tasks: session.tasks,
      files: this.#reviews.filePages.length > 0,
      written: this.#reviews.written.length > 0,
    };
  }

  #places(page: string) {
    const waits = page === "inbox" ? this.#waiting > 0 : this.#question !== undefined;
    return placesOn(page, waits);
  }

  #dialogOf(session: Session, page: string) {
    const closed = () => {
      this.dialog = "";
    };
    const has = this.#has(session);
    if (this.dialog === "keys") return html`<isthmus-keys .has=${has} @closed=${closed}></isthmus-keys>`;
    return html`<isthmus-palette
      .has=${has}
      .places=${this.#places(page)}
      ?isOwner=${!session.user}
      .written=${this.#reviews.written[0]?.id ?? ""}
      .sessions=${this.#sessions.sessions}
      @closed=${closed}
    ></isthmus-palette>`;
  }

  override updated(): void {
    this.#name();
    const { session } = this.#route;
    if (session) this.#toasts.read(session.contextId);
    if (this.#hasArrived) void this.#arrive();
    const toasts = this.#toasts.toasts.length ? this.querySelector<HTMLElement>(".toasts") : undefined;
    if (toasts) keepOffAnswers(toasts);
  }

  /** Give the focus to the heading of the page that was gone to, unless the page has it: a screen reader goes on there. */
  async #arrive(): Promise<void> {
    await this.querySelector<PageElement>(".frame > :nth-child(2)")?.updateComplete;
    const main = this.querySelector("main");
    const heading = [...(main?.querySelectorAll("h1") ?? [])].find((one) => one.checkVisibility());
    // A page that comes later has none yet.
    if (!main || !heading || !this.#hasArrived) return;
    this.#hasArrived = false;
    if (main.contains(document.activeElement)) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }

  #press = (event: KeyboardEvent): void => {
    const { session } = this.#access;
    if (session && isPalette(event)) {
      event.preventDefault();
      this.dialog = "palette";
      return;
    }
    if (!session || !isForPage(event)) return;
    const first = this.#second;
    this.#second = "";
    if (first === "g" && event.key === "i") go(PAGE);
    else if (first === "g" && event.key === "h" && session.tasks) go(`${PAGE}history`);
    else if (first === "g" && event.key === "f" && this.#reviews.filePages.length) go(`${PAGE}files`);
    else if (first === "g" && event.key === "w" && this.#reviews.written[0])
      go(`${PAGE}written/${this.#reviews.written[0].id}`);
    else if (first === "g" && event.key === "s" && session.tasks) go(`${PAGE}tools`);
    else if (event.key === "g") this.#second = "g";
    else if (event.key === "c" && session.tasks) go(`${PAGE}new`);
    else if (event.key === "?") this.dialog = "keys";
    else return;
    event.preventDefault();
  };
}

/** Return whether a key opens the list of all actions; also in a text field, but not above another dialog. */
function isPalette(event: KeyboardEvent): boolean {
  const isPressed = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "k";
  return isPressed && !event.defaultPrevented && document.querySelector("dialog[open]") === null;
}

/** Return what a question is about, for the title of the document. */
function askedIn({ call, task }: Question): string {
  const { verb, object } = factsOf(call, task.workspace);
  return `${verb} ${object}`;
}
