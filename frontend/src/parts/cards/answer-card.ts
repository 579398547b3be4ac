import { html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { isLongText } from "../../diff/change-size.ts";
import { isForPage, isMeant } from "../../frame/keys.ts";
import { problemOf } from "../../problems/problem.ts";
import { exact } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { noteRead } from "./answer-drafts.ts";
import { PageElement, READ_MS } from "../base.ts";
import type { DiffElement } from "../files/diff-view.ts";
import "./long-text.ts";
import type { MenuRow } from "../phone-menu.ts";
import "./reject-reason.ts";

/** A part of a card that may be so large that all of it is to be seen. */
type Awaited = HTMLElement & { unseen: { seen: number; all: number } | undefined; goUnseen(): void };

const MAXIMUM_REASON = 20_000;

/**
 * A card with something to answer. One rule for clicks and keys: an answer counts once all of what is asked was on the
 * screen for READ_MS, and again only after that time if it has changed or the page was hidden.
 */
export abstract class AnswerCard extends PageElement {
  @property({ type: Boolean }) isOff = false;
  @property({ type: Boolean }) takesKeys = false;
  /** Whether it is in the document and out of view, so that nothing of it is being read. */
  @property({ type: Boolean }) isAway = false;
  /** A template that is drawn beside the title. */
  @property({ attribute: false }) beside: unknown;
  @state() protected sending = "";
  @state() protected problem = "";
  @state() protected isTelling = false;
  @state() private isRead = false;
  #timer = 0;
  #isReading = false;
  /** Whether it was being read when it left the document, from which a list may only move it to another place. */
  #wasReading = false;
  #subject = "";
  #takesFocus = false;
  /** Whether an answer was given here, so that nothing of the card is needed again. */
  protected wasSent = false;

  /** Name of what is asked; the card begins anew with each. */
  protected abstract get subject(): string;
  /** Whether there is nothing more to answer. */
  protected abstract get isOver(): boolean;
  /** Whether words about a rejection reach the agent. */
  protected abstract get carriesWords(): boolean;

  /** Digest of what is shown, if it can change. */
  protected get digest(): string {
    return "";
  }

  /** Whether something is drawn after which the time to read it began. */
  protected get isReading(): boolean {
    return this.#isReading;
  }

  /** Words that a rejection carries beside those that are typed. */
  protected get saidBefore(): string {
    return "";
  }

  /** Begin with another subject. */
  protected abstract begin(): void;

  /** Leave a subject, before another one begins or the card goes. */
  protected leave(_subject: string): void {}

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
    if (this.#wasReading) this.readAgain();
    this.#wasReading = false;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.removeEventListener("seen", this.#seen);
    document.removeEventListener("visibilitychange", this.#see);
    this.#wasReading = this.#isReading;
    this.unread();
    this.leave(this.#subject);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    const before = this.#subject;
    if (this.subject === before) {
      if (!changed.has("isAway")) return;
      if (this.isAway) this.unread();
      else this.readAgain();
      return;
    }
    this.#subject = this.subject;
    // After an answer that was given here the focus goes to the next question; nothing of it is pressed.
    // If the focus is in what is answered elsewhere, it goes there, too.
    this.#takesFocus =
      before !== "" && (this.sending !== "" || this.isTelling || this.contains(document.activeElement));
    if (before) this.leave(before);
    this.unread();
    this.sending = this.problem = "";
    this.isTelling = this.wasSent = false;
    this.begin();
  }

  override updated(_changed: Map<string, unknown>): void {
    if (!this.#takesFocus) return;
    this.#takesFocus = false;
    this.focusTitle();
  }

  /** All of what is asked is shown: answers count in a moment, unless it is out of view. */
  protected read(): void {
    clearTimeout(this.#timer);
    if (this.isAway) return;
    this.#isReading = true;
    this.#timer = window.setTimeout(() => {
      this.isRead = !document.hidden;
      if (this.isRead && !this.unseen) noteRead(this.#subject, this.digest);
    }, READ_MS);
  }

  /** What is asked came back into view. */
  protected readAgain(): void {
    this.read();
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
    this.problem = problemOf(error);
  }

  /** Give the focus to the title, which stands in the head of the page on a phone. */
  protected focusTitle(): void {
    const title = this.querySelector<HTMLElement>("h2");
    (title?.checkVisibility() ? title : this.parentElement?.querySelector<HTMLElement>(".sheet-head h1"))?.focus();
  }

  /** Answers and actions that have no button of their own on a phone. */
  get further(): MenuRow[] {
    return [];
  }

  /** Whether a finger can do things on the card without a button. */
  get hasGestures(): boolean {
    return false;
  }

  protected tell = (): void => {
    if (this.isReady) this.isTelling = true;
  };

  protected untell = (): void => {
    this.isTelling = false;
    this.focusTitle();
  };

  /** Show the diffs of the card side by side, or in one column if they are. */
  protected readonly toggleSides = (): void => {
    const [first, ...others] = this.querySelectorAll<DiffElement>("isthmus-diff");
    first?.toggle();
    for (const other of others) other.fit();
    this.requestUpdate();
  };

  /** Return a text to allow whole, in parts if it is long. */
  protected shownText(text: string, label: string, before = "") {
    if (isLongText(text))
      return keyed(this.subject, html`<isthmus-long-text .text=${text} .label=${label}></isthmus-long-text>`);
    return html`<pre class="command" tabindex="0" dir="ltr">${before}${exact(text)}</pre>`;
  }

  /** Return the field for the words of a rejection; `note` says what sending them does, `agent` who gets them, `brief` the same on a phone. */
  protected reason(note: string, agent = "", brief = "") {
    const before = this.saidBefore;
    return html`<isthmus-reason
      .name=${this.subject}
      .note=${note}
      .agent=${agent}
      .brief=${brief}
      .comments=${before}
      ?carries=${this.carriesWords}
      ?isBusy=${this.sending !== ""}
      ?isOff=${this.isOff}
      @told=${(event: CustomEvent<string>) => void this.told([event.detail, before].filter(Boolean).join("\n\n").slice(0, MAXIMUM_REASON))}
      @closed=${this.untell}
    ></isthmus-reason>`;
  }

  /** Return a line about what is to be seen before the answer counts. */
  protected hints() {
    const unseen = this.unseen;
    return unseen
      ? html`<p class="hint" role="status" id="unseen">
          ${unseen.all > 1 ? t("hunksSeen", unseen.seen, unseen.all) : t("partUnseen")}
        </p>`
      : nothing;
  }

  protected problems() {
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
    ${this.isOff && !this.isOver ? html`<p class="problem">${t("offline")}</p>` : nothing}`;
  }

  /** Return a button of an answer, which does nothing before the answer counts; until then it can have the focus. */
  protected button(
    words: unknown,
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

  #press = (event: KeyboardEvent): void => {
    if (!this.takesKeys || this.isOver || this.isTelling || !isForPage(event) || !this.checkVisibility()) return;
    // An answer that was not meant is none, and nothing else either.
    if (isMeant(event) ? this.pressed(event.key) : this.isAnswer(event.key)) event.preventDefault();
    else if (event.key === "e" && !isMeant(event)) event.preventDefault();
    else if (event.key === " " ? this.#space(event) : this.tool(event.key)) event.preventDefault();
  };

  /** Go on with a large change, unless the key presses a button. */
  #space(event: KeyboardEvent): boolean {
    const target = event.composedPath()[0];
    if (!this.unseen || (target instanceof Element && target.closest("button, a, summary"))) return false;
    this.#goUnseen();
    return true;
  }

  /** Take a key that answers nothing; return whether it stands for something of this card. */
  protected tool(key: string): boolean {
    if (key !== "v") return false;
    this.toggleSides();
    return true;
  }
}
