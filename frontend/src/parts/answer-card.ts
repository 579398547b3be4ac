import { html, nothing } from "lit";
import { property, query, state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { isLongText, mustBeSeen } from "../diff/change-size.ts";
import { icon } from "../icons.ts";
import { type LineComment, type Place, commentText, newComment, saidComments } from "../diff/line-comments.ts";
import { exact, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { t } from "../words.ts";
import { PageElement, READ_MS } from "./base.ts";
import type { DiffDraft, DiffElement } from "./diff-view.ts";
import type { NotebookView } from "./notebook-view.ts";
import { type NotebookChanges, notebookChanges } from "../notebook-cells.ts";
import "./diff-view.ts";
import "./long-text.ts";
import "./notebook-view.ts";
import "./reject-reason.ts";
import { isForPage, isMeant } from "../keys.ts";
import { diffHeader, sidesSwitch } from "./diff-header.ts";

/** What the user has chosen and typed in a card that is not in view. */
interface Draft {
  seen: unknown;
  diff: DiffDraft | undefined;
  isEditing: boolean;
  comments: LineComment[];
}

const DRAFTS = new Map<string, Draft>();
/** What was on the screen long enough for an answer, with a digest of it if it can change. */
const READ = new Map<string, string>();

/** A part of a card that may be so large that all of it is to be seen. */
type Awaited = HTMLElement & { unseen: { seen: number; all: number } | undefined; goUnseen(): void };

/** Return whether the user has changed or commented on something that was not answered yet. */
export function hasDraft(subject: string): boolean {
  return DRAFTS.has(subject);
}

export function wasRead(subject: string, digest: string): boolean {
  return READ.get(subject) === digest;
}

const MAXIMUM_REASON = 20_000;

/**
 * A card with something to answer. One rule for clicks and keys: an answer counts once all of what is asked was on the
 * screen for READ_MS, and again only after that time if it has changed or the page was hidden.
 */
export abstract class AnswerCard extends PageElement {
  @property({ type: Boolean }) isOff = false;
  @property({ type: Boolean }) takesKeys = false;
  @state() protected sending = "";
  @state() protected problem = "";
  @state() protected isEditing = false;
  @state() protected isEdited = false;
  @state() protected isTelling = false;
  @state() protected comments: LineComment[] = [];
  /** Whether a notebook is shown as the text that it is. */
  @state() private isJson = false;
  @state() private chosen: Place | undefined;
  @state() private isRead = false;
  @query("isthmus-diff.main") protected diff: DiffElement | null | undefined;
  #timer = 0;
  #isReading = false;
  #subject = "";
  #takesFocus = false;
  #notebook: { before: string | undefined; after: string; changes: NotebookChanges | undefined } | undefined;
  /** Whether an answer was given here, so that nothing of the card is needed again. */
  protected wasSent = false;

  /** Name of what is asked; the card begins anew with each. */
  protected abstract get subject(): string;
  /** Whether there is nothing more to answer. */
  protected abstract get isOver(): boolean;
  /** Whether the card shows a text that can be edited first. */
  protected abstract get isEdit(): boolean;

  /** Name of the file for the agent. */
  protected abstract get path(): string;
  /** Whether words about a rejection reach the agent. */
  protected abstract get carriesWords(): boolean;
  /** What was seen when something was typed; it is kept with that. */
  protected abstract seen: unknown;

  /** Digest of what is shown, if it can change. */
  protected get digest(): string {
    return "";
  }

  /** Begin with another subject. */
  protected abstract begin(): void;

  /** Reject with words for the agent, which may be empty. */
  protected abstract told(words: string): Promise<void>;

  /** Return whether a key stands for an answer. */
  protected abstract isAnswer(key: string): boolean;

  /** Take a key that stands for an answer; return whether it does. */
  protected abstract pressed(key: string): boolean;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    this.addEventListener("seen", this.#seen);
    document.addEventListener("visibilitychange", this.#see);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.removeEventListener("seen", this.#seen);
    document.removeEventListener("visibilitychange", this.#see);
    clearTimeout(this.#timer);
    this.#keep(this.#subject);
  }

  override willUpdate(_changed: Map<string, unknown>): void {
    const before = this.#subject;
    if (this.subject === before) return;
    this.#subject = this.subject;
    // After an answer that was given here the focus goes to the next question; nothing of it is pressed.
    // If the focus is in what is answered elsewhere, it goes there, too.
    this.#takesFocus =
      before !== "" && (this.sending !== "" || this.isTelling || this.contains(document.activeElement));
    if (before) this.#keep(before);
    this.unread();
    this.sending = this.problem = "";
    this.isEditing = this.isEdited = this.isTelling = this.wasSent = this.isJson = false;
    this.comments = [];
    this.chosen = undefined;
    this.seen = undefined;
    this.#restore();
    this.begin();
  }

  #keep(subject: string): void {
    const diff = this.isEdited ? this.diff?.draft : undefined;
    const comments = saidComments(this.comments);
    if (!this.wasSent && (diff || comments.length))
      DRAFTS.set(subject, { seen: this.seen, diff, isEditing: this.isEditing, comments });
    else DRAFTS.delete(subject);
  }

  #restore(): void {
    const subject = this.#subject;
    const draft = DRAFTS.get(subject);
    if (!draft) return;
    this.seen = draft.seen;
    this.comments = draft.comments;
    const { diff } = draft;
    if (!diff) return;
    this.isEdited = true;
    this.isEditing = draft.isEditing;
    void this.updateComplete
      .then(() => this.diff?.updateComplete)
      .then(() => {
        if (subject === this.#subject) this.diff?.edit(diff);
      });
  }

  override updated(_changed: Map<string, unknown>): void {
    if (!this.#takesFocus) return;
    this.#takesFocus = false;
    this.focusTitle();
  }

  /** All of what is asked is shown: answers count in a moment. */
  protected read(): void {
    clearTimeout(this.#timer);
    this.#isReading = true;
    this.#timer = window.setTimeout(() => {
      this.isRead = !document.hidden;
      if (this.isRead && !this.unseen) READ.set(this.#subject, this.digest);
    }, READ_MS);
  }

  /** As soon as the diff is drawn, all of what is asked is shown. */
  protected readDiff(): void {
    void this.updateComplete.then(() => {
      if (this.diff?.isShown || this.querySelector<NotebookView>("isthmus-notebook")?.isShown) this.read();
    });
  }

  get #awaited(): Awaited[] {
    return [...this.querySelectorAll<Awaited>("isthmus-diff, isthmus-long-text")].filter((one) => one.unseen);
  }

  /** The numbers of parts of a large change or text that were on the screen, and of all; undefined once all were. */
  protected get unseen(): { seen: number; all: number } | undefined {
    const counts = this.#awaited.map((one) => one.unseen ?? { seen: 0, all: 0 });
    return counts.length
      ? { seen: counts.reduce((sum, one) => sum + one.seen, 0), all: counts.reduce((sum, one) => sum + one.all, 0) }
      : undefined;
  }

  #seen = (): void => {
    if (!this.unseen) {
      this.unread();
      this.read();
    }
    this.requestUpdate();
  };

  #goUnseen = (): void => {
    this.#awaited[0]?.goUnseen();
  };

  /** What is asked is not shown, or not all of it. */
  protected unread(): void {
    clearTimeout(this.#timer);
    this.#isReading = this.isRead = false;
  }

  #see = (): void => {
    if (document.hidden) this.isRead = false;
    else if (this.#isReading) this.read();
  };

  /** Whether an answer counts now. */
  protected get isReady(): boolean {
    return this.isRead && !this.isOff && !this.isOver && this.sending === "";
  }

  protected say(error: unknown): void {
    this.sending = "";
    this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
  }

  protected focusTitle(): void {
    this.querySelector<HTMLElement>("h2")?.focus();
  }

  protected edit = (): void => {
    if (!this.isEdit || this.isOver || this.diff?.isEditor === false) return;
    this.isEditing = true;
    // A notebook was not shown as text before.
    void this.updateComplete.then(() => this.diff?.focusText());
  };

  protected tell = (): void => {
    if (this.isReady) this.isTelling = true;
  };

  protected untell = (): void => {
    this.isTelling = false;
    this.focusTitle();
  };

  /** Write a comment on the chosen line, or with `isOld` on the line as it was. */
  #comment(isOld = false): void {
    const place = this.isOver || this.sending ? undefined : this.diff?.place(isOld);
    if (!place) return;
    const known = this.comments.find((one) => one.side === place.side && one.line === place.line);
    const comment = known ?? newComment(place);
    if (!known) this.comments = [...this.comments, comment];
    void this.updateComplete.then(() => this.diff?.focusComment(comment.id));
  }

  #drawn = (): void => {
    this.requestUpdate();
    if (!this.#isReading) this.read();
  };

  protected readonly toggleSides = (): void => {
    const [first, ...others] = this.querySelectorAll<DiffElement>("isthmus-diff");
    first?.toggle();
    for (const other of others) other.fit();
    this.requestUpdate();
  };

  #showJson = (): void => {
    this.isJson = !this.isJson;
    this.unread();
    this.readDiff();
  };

  /** Return the changes of a notebook, which are found once. */
  #changesOf(before: string | undefined, after: string): NotebookChanges | undefined {
    if (this.#notebook?.before !== before || this.#notebook?.after !== after)
      this.#notebook = { before, after, changes: notebookChanges(before, after) };
    return this.#notebook?.changes;
  }

  #commented = ({ detail: { id, text } }: CustomEvent<{ id: number; text: string | undefined }>): void => {
    this.comments =
      text === undefined
        ? this.comments.filter((one) => one.id !== id)
        : this.comments.map((one) => (one.id === id ? { ...one, text } : one));
  };

  /** Number of comments that say something. */
  protected get commentCount(): number {
    return saidComments(this.comments).length;
  }

  /** Return the diff of a file with its line of tools; `before` is undefined for a new file. */
  protected shownDiff(path: string, before: string | undefined, after: string, counts: unknown) {
    const { isOver, chosen } = this;
    const changes = path.toLowerCase().endsWith(".ipynb") ? this.#changesOf(before, after) : undefined;
    const isCells = changes !== undefined && !this.isJson && !this.isEditing && !this.isEdited && !this.comments.length;
    const comment = chosen
      ? t(chosen.side === "old" ? "commentOnOld" : "commentOn", chosen.shown ?? chosen.line)
      : t("comment");
    const tools = html`${this.isEdited ? html`<span class="pill acc wide-only">${t("edited")}</span>` : nothing}
    ${this.isEdited && !isOver ? html`<button class="b small quiet" @click=${() => this.diff?.undo()}>${t("undoEdits")}</button>` : nothing}
    ${changes && !this.isEditing && !this.isEdited && !this.comments.length ? html`<button class="b small quiet" @click=${this.#showJson}>${t(isCells ? "asJson" : "asCells")}</button>` : nothing}
    ${isOver || isCells || this.diff?.isEditor === false ? nothing : html`<button class="b small quiet" title=${comment} @click=${() => this.#comment()}>${icon("comment")}<span class="named-only">${comment}</span> <kbd>m</kbd></button>`}
    ${before === undefined || this.diff?.isEditor === false ? nothing : sidesSwitch(this.diff?.isSides ?? false, this.toggleSides)}`;
    return html`${diffHeader(path, counts, this.diff?.hunkCounts.all ?? 0, tools)}
    ${
      isCells
        ? keyed(
            this.subject,
            html`<isthmus-notebook
              .changes=${changes}
              ?isLarge=${mustBeSeen(before ?? "", after)}
              @shown=${this.#drawn}
            ></isthmus-notebook>`,
          )
        : keyed(
            this.subject,
            html`<isthmus-diff
              class="main"
              isAwaited
              .oldText=${before}
              .newText=${after}
              .path=${path}
              .comments=${this.comments}
              ?isOpen=${!isOver}
              ?editable=${this.isEditing && !isOver}
              @shown=${this.#drawn}
              @edited=${() => {
                this.isEdited = this.diff?.isEdited ?? false;
                this.requestUpdate();
              }}
              @chosen=${(event: CustomEvent<Place>) => {
                this.chosen = event.detail;
              }}
              @commented=${this.#commented}
              @left=${this.focusTitle}
            ></isthmus-diff>`,
          )
    }`;
  }

  /** Return a text to allow whole, in parts if it is long. */
  protected shownText(text: string, label: string, before = "") {
    if (isLongText(text))
      return keyed(this.subject, html`<isthmus-long-text .text=${text} .label=${label}></isthmus-long-text>`);
    return html`<pre class="command" tabindex="0" dir="ltr">${before}${exact(text)}</pre>`;
  }

  /** Return the field for the words of a rejection; `note` says what sending them does. */
  protected reason(note: string) {
    const comments = commentText(this.path, this.comments);
    return html`<isthmus-reason
      .name=${this.subject}
      .note=${note}
      .comments=${comments}
      ?carries=${this.carriesWords}
      ?isBusy=${this.sending !== ""}
      ?isOff=${this.isOff}
      @told=${(event: CustomEvent<string>) => void this.told([event.detail, comments].filter(Boolean).join("\n\n").slice(0, MAXIMUM_REASON))}
      @closed=${this.untell}
    ></isthmus-reason>`;
  }

  /** Return a line about what the answer does with hunks and comments. */
  protected hints() {
    const { all, kept } = this.isEdited && this.diff ? this.diff.hunkCounts : { all: 0, kept: 0 };
    const comments = this.commentCount;
    const said = [
      kept ? t("hunksKept", all - kept, kept) : "",
      comments ? t(comments === 1 ? "commentWaits" : "commentsWait", comments) : "",
    ].filter(Boolean);
    const unseen = this.unseen;
    return html`${said.length ? html`<p class="hint" role="status">${said.join(" \u00b7 ")}</p>` : nothing}
    ${unseen ? html`<p class="hint" role="status" id="unseen">${unseen.all > 1 ? t("hunksSeen", unseen.seen.toLocaleString(), unseen.all.toLocaleString()) : t("partUnseen")}</p>` : nothing}`;
  }

  protected problems() {
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
    ${this.isOff && !this.isOver ? html`<p class="problem">${t("offline")}</p>` : nothing}`;
  }

  /** Return a button of an answer, which does nothing before the answer counts; until then it can have the focus. */
  protected button(
    words: string,
    key: string,
    more: string,
    isSending: boolean,
    isPossible: boolean,
    act: () => void,
    title = "",
    isWaiting = false,
  ) {
    const isOff = !isPossible || this.isOff || this.sending !== "";
    return html`<button
      class="b ${more}"
      ?disabled=${isOff}
      aria-disabled=${!isOff && (!this.isRead || isWaiting) ? "true" : nothing}
      aria-describedby=${isWaiting ? "unseen" : nothing}
      title=${title || nothing}
      @click=${act}
    >
      ${isSending ? t("sending") : words} ${key ? html`<kbd>${key}</kbd>` : nothing}
    </button>`;
  }

  /** Return the button that goes to what was not on the screen yet, while there is something. */
  protected unseenButton() {
    return this.unseen
      ? html`<button class="b" @click=${this.#goUnseen}>${t("nextUnseen")} <kbd>space</kbd></button>`
      : nothing;
  }

  protected editButton() {
    if (this.diff && !this.diff.isEditor) return nothing;
    return html`<button
      class="b"
      ?disabled=${!this.isEdit || this.sending !== "" || this.isEditing || this.isOff}
      @click=${this.edit}
    >
      ${t("editFirst")} <kbd>e</kbd>
    </button>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (!this.takesKeys || this.isOver || this.isTelling || !isForPage(event) || !this.checkVisibility()) return;
    // An answer that was not meant is none, and nothing else either.
    if (isMeant(event) ? this.pressed(event.key) : this.isAnswer(event.key)) event.preventDefault();
    else if (event.key === "e" && !isMeant(event)) event.preventDefault();
    else if (event.key === " " ? this.#space(event) : this.#tool(event.key)) event.preventDefault();
  };

  /** Go on with a large change, unless the key presses a button. */
  #space(event: KeyboardEvent): boolean {
    const target = event.composedPath()[0];
    if (!this.unseen || (target instanceof Element && target.closest("button, a, summary"))) return false;
    this.#goUnseen();
    return true;
  }

  #tool(key: string): boolean {
    switch (key) {
      case "e":
        this.edit();
        break;
      case "v":
        this.toggleSides();
        break;
      default:
        return this.tool(key) || (this.isEdit && this.#diffTool(key));
    }
    return true;
  }

  /** Take a key that answers nothing; return whether it stands for something of this card. */
  protected tool(_key: string): boolean {
    return false;
  }

  #diffTool(key: string): boolean {
    switch (key) {
      case "]":
        this.diff?.goHunk(1);
        break;
      case "[":
        this.diff?.goHunk(-1);
        break;
      case "a":
        this.diff?.decide("taken");
        break;
      case "x":
        this.diff?.decide("kept");
        break;
      case "u":
        this.diff?.decide("open");
        break;
      case "m":
        this.#comment();
        break;
      case "M":
        this.#comment(true);
        break;
      default:
        return false;
    }
    return true;
  }
}
