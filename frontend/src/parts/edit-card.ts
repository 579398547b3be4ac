import { html, nothing } from "lit";
import { query, state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { mustBeSeen } from "../diff/change-size.ts";
import { type LineComment, type Place, commentText, newComment, saidComments } from "../diff/line-comments.ts";
import { type Icon, icon } from "../icons.ts";
import { type NotebookChanges, notebookChanges } from "../notebook-cells.ts";
import { type PhoneWord, phoneWord } from "../phone/words.ts";
import { t } from "../words.ts";
import type { MenuRow } from "./phone-menu.ts";
import { AnswerCard } from "./answer-card.ts";
import { draftOf, keepDraft } from "./answer-drafts.ts";
import { diffHeader, sidesSwitch } from "./diff-header.ts";
import type { DiffElement } from "./diff-view.ts";
import type { NotebookView } from "./notebook-view.ts";
import "./diff-view.ts";
import "./notebook-view.ts";

/** A card that may ask about the change of a file, which can be edited and commented on before the answer. */
export abstract class EditCard extends AnswerCard {
  @state() protected isEditing = false;
  @state() protected isEdited = false;
  @state() protected comments: LineComment[] = [];
  /** Whether a notebook is shown as the text that it is. */
  @state() private isJson = false;
  @state() private chosen: Place | undefined;
  @query("isthmus-diff.main") protected diff: DiffElement | null | undefined;
  #notebook: { before: string | undefined; after: string; changes: NotebookChanges | undefined } | undefined;

  /** Whether the card shows a text that can be edited first. */
  protected abstract get isEdit(): boolean;
  /** Name of the file for the agent. */
  protected abstract get path(): string;
  /** What was seen when something was typed; it is kept with that. */
  protected abstract seen: unknown;

  protected override get saidBefore(): string {
    return commentText(this.path, this.comments);
  }

  protected override leave(subject: string): void {
    const diff = this.isEdited ? this.diff?.draft : undefined;
    const comments = saidComments(this.comments);
    const isTyped = !this.wasSent && (diff !== undefined || comments.length > 0);
    keepDraft(subject, isTyped ? { seen: this.seen, diff, isEditing: this.isEditing, comments } : undefined);
  }

  protected override begin(): void {
    this.isEditing = this.isEdited = this.isJson = false;
    this.comments = [];
    this.chosen = undefined;
    this.seen = undefined;
    this.#restore();
  }

  #restore(): void {
    const { subject } = this;
    const draft = draftOf(subject);
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
        if (subject === this.subject) this.diff?.edit(diff);
      });
  }

  /** As soon as the diff is drawn, all of what is asked is shown. */
  protected readDiff(): void {
    void this.updateComplete.then(() => {
      if (this.diff?.isShown || this.querySelector<NotebookView>("isthmus-notebook")?.isShown) this.read();
    });
  }

  protected edit = (): void => {
    if (!this.isEdit || this.isOver || this.diff?.isEditor === false) return;
    this.isEditing = true;
    // A notebook was not shown as text before.
    // The text can have the focus once it can be typed in.
    void this.updateComplete.then(() => this.diff?.updateComplete).then(() => this.diff?.focusText());
  };

  /** Answers and actions that have no button of their own on a phone. */
  override get further(): MenuRow[] {
    if (this.isOver || this.isTelling || !this.isEdit || this.diff?.isEditor === false) return [];
    const isOff = this.sending !== "";
    const row = (icon: Icon, words: string, note: PhoneWord, act: () => void): MenuRow => {
      return { icon, words, note: phoneWord(note), isOff, act };
    };
    const rows = [
      row("edit", t("editFirst"), "editNote", this.edit),
      row("comment", phoneWord("commentLine"), "commentNote", () => this.#comment()),
    ];
    if (this.isEdited) rows.push(row("undo", t("undoEdits"), "undoNote", () => this.diff?.undo()));
    return rows;
  }

  /** Short words for what an answer covers, for the line above the diff on a phone. */
  protected get limit(): string {
    return "";
  }

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
    if (!this.isReading) this.read();
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
    const { isOver } = this;
    const changes = path.toLowerCase().endsWith(".ipynb") ? this.#changesOf(before, after) : undefined;
    const isAsProposed = !this.isEditing && !this.isEdited && !this.comments.length;
    const isCells = changes !== undefined && !this.isJson && isAsProposed;
    const tools = this.#tools(before !== undefined, isCells, changes !== undefined && isAsProposed);
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

  /** Return the tools in the header of a diff. */
  #tools(hasBefore: boolean, isCells: boolean, isNotebook: boolean) {
    const { isOver, chosen } = this;
    const hasEditor = this.diff?.isEditor !== false;
    const comment = chosen
      ? t(chosen.side === "old" ? "commentOnOld" : "commentOn", chosen.shown ?? chosen.line)
      : t("comment");
    return html`${this.limit ? html`<span class="limit xs t3 phone-only">${this.limit}</span>` : nothing}
    ${this.isEdited ? html`<span class="pill acc wide-only">${t("edited")}</span>` : nothing}
    ${this.isEdited && !isOver ? html`<button class="b small quiet desk-only" @click=${() => this.diff?.undo()}>${t("undoEdits")}</button>` : nothing}
    ${isNotebook ? html`<button class="b small quiet" @click=${this.#showJson}>${t(isCells ? "asJson" : "asCells")}</button>` : nothing}
    ${isOver || isCells || !hasEditor ? nothing : html`<button class="b small quiet desk-only" title=${comment} @click=${() => this.#comment()}>${icon("comment")}<span class="named-only">${comment}</span> <kbd>m</kbd></button>`}
    ${hasBefore && hasEditor ? sidesSwitch(this.diff?.isSides ?? false, this.toggleSides) : nothing}`;
  }

  /** Return lines about what the answer does with hunks and comments, and what is to be seen before. */
  protected override hints() {
    const { all, kept } = this.isEdited && this.diff ? this.diff.hunkCounts : { all: 0, kept: 0 };
    const comments = this.commentCount;
    const said = [
      kept ? t("hunksKept", all - kept, kept) : "",
      comments ? t(comments === 1 ? "commentWaits" : "commentsWait", comments) : "",
    ].filter(Boolean);
    return html`${said.length ? html`<p class="hint" role="status">${said.join(" \u00b7 ")}</p>` : nothing}
    ${super.hints()}`;
  }

  protected editButton() {
    if (this.diff && !this.diff.isEditor) return nothing;
    return html`<button
      class="b desk-only"
      ?disabled=${!this.isEdit || this.sending !== "" || this.isEditing || this.isOff}
      @click=${this.edit}
    >
      ${t("editFirst")} <kbd>e</kbd>
    </button>`;
  }

  protected override tool(key: string): boolean {
    if (key !== "e") return super.tool(key) || (this.isEdit && this.#diffTool(key));
    this.edit();
    return true;
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
