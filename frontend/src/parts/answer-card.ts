import { html, nothing } from "lit";
import { property, query, state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { icon } from "../icons.ts";
import { visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { t } from "../words.ts";
import { PageElement, READ_MS, isForPage } from "./base.ts";
import { type DiffElement } from "./diff-view.ts";
import "./diff-view.ts";
import "./reject-reason.ts";

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
  @state() private isRead = false;
  @query("isthmus-diff") protected diff: DiffElement | null | undefined;
  #timer = 0;
  #isReading = false;
  #subject = "";
  #takesFocus = false;

  /** Name of what is asked; the card begins anew with each. */
  protected abstract get subject(): string;
  /** Whether there is nothing more to answer. */
  protected abstract get isOver(): boolean;
  /** Whether the card shows a text that can be edited first. */
  protected abstract get isEdit(): boolean;

  /** Begin with another subject; `before` is the one whose state is given up, empty at first. */
  protected abstract begin(before: string): void;

  /** Reject with words for the agent. */
  protected abstract told(words: string): Promise<void>;

  /** Take a key that stands for an answer; return whether it does. */
  protected abstract pressed(key: string): boolean;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
    document.addEventListener("visibilitychange", this.#see);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    document.removeEventListener("visibilitychange", this.#see);
    clearTimeout(this.#timer);
  }

  override willUpdate(_changed: Map<string, unknown>): void {
    const before = this.#subject;
    if (this.subject === before) return;
    this.#subject = this.subject;
    // After an answer that was given here the focus goes to the next question; nothing of it is pressed.
    this.#takesFocus = before !== "" && (this.sending !== "" || this.isTelling);
    this.unread();
    this.begin(before);
    this.sending = this.problem = "";
    this.isEditing = this.isEdited = this.isTelling = false;
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
    this.#timer = window.setTimeout(() => { this.isRead = !document.hidden; }, READ_MS);
  }

  /** As soon as the diff is drawn, all of what is asked is shown. */
  protected readDiff(): void {
    void this.updateComplete.then(() => { if (this.diff?.isShown) this.read(); });
  }

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
    if (this.isEdit && !this.isOver) this.isEditing = true;
  };

  protected tell = (): void => {
    if (this.isReady) this.isTelling = true;
  };

  protected untell = (): void => {
    this.isTelling = false;
    this.focusTitle();
  };

  /** Return the diff of a file with its line of tools; `before` is undefined for a new file. */
  protected shownDiff(path: string, before: string | undefined, after: string, counts: unknown) {
    return html`<div class="dhead">${icon("file")}<code class="cut" dir="auto">${path}</code> ${counts}
        ${this.isEdited ? html`<span class="pill acc">${t("edited")}</span>` : nothing}
        <span class="right row">
          ${this.isEdited && !this.isOver ? html`<button class="b small quiet" @click=${() => this.diff?.undo()}>${t("undoEdits")}</button>` : nothing}
          ${before === undefined ? nothing : html`<button class="b small quiet wide-only" @click=${() => this.diff?.toggle()}>${icon("sides")}${t("sideBySide")} <kbd>v</kbd></button>`}
        </span>
      </div>
      ${keyed(this.subject, html`<isthmus-diff .oldText=${before} .newText=${after} .path=${path} ?editable=${this.isEditing && !this.isOver}
        @shown=${() => { if (!this.#isReading) this.read(); }} @edited=${() => { this.isEdited = this.diff?.isEdited ?? false; }}></isthmus-diff>`)}`;
  }

  /** Return the field for the words of a rejection; `note` says what sending them does. */
  protected reason(note: string) {
    return html`<isthmus-reason .name=${this.subject} .note=${note} ?isBusy=${this.sending !== ""} ?isOff=${this.isOff}
      @told=${(event: CustomEvent<string>) => void this.told(event.detail)} @closed=${this.untell}></isthmus-reason>`;
  }

  protected problems() {
    return html`${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
      ${this.isOff && !this.isOver ? html`<p class="problem">${t("offline")}</p>` : nothing}`;
  }

  /** Return a button of an answer, which does nothing before the answer counts; until then it can have the focus. */
  protected button(words: string, key: string, more: string, isSending: boolean, isPossible: boolean, act: () => void, title = "") {
    const isOff = !isPossible || this.isOff || this.sending !== "";
    return html`<button class="b ${more}" ?disabled=${isOff} aria-disabled=${!isOff && !this.isRead ? "true" : nothing} title=${title || nothing} @click=${act}>
      ${isSending ? t("sending") : words} <kbd>${key}</kbd></button>`;
  }

  protected editButton() {
    return html`<button class="b" ?disabled=${this.sending !== "" || this.isEditing || this.isOff} @click=${this.edit}>${t("editFirst")} <kbd>e</kbd></button>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (!this.takesKeys || this.isOver || this.isTelling || !isForPage(event)) return;
    if (this.pressed(event.key) || this.#tool(event.key)) event.preventDefault();
  };

  #tool(key: string): boolean {
    if (key === "e") this.edit();
    else if (key === "v") this.diff?.toggle();
    else return false;
    return true;
  }
}
