import { html, nothing } from "lit";
import { query, state } from "lit/decorators.js";
import { keyed } from "lit/directives/keyed.js";
import { mustBeSeen } from "../../diff/change-size.ts";
import { compare } from "../../diff/compare.ts";
import { newId, sessionOfTask } from "../../client.ts";
import { keepComments } from "../../diff/comment-drafts.ts";
import {
  type LineComment,
  type Place,
  anchored,
  commentText,
  lineOf,
  newComment,
  saidComments,
} from "../../diff/editor/line-comments.ts";
import type { Touched } from "../../diff/editor/diff-touch.ts";
import { type Odd, oddIn } from "../../diff/odd.ts";
import { type Icon, icon } from "../../frame/icons.ts";
import { type NotebookChanges, notebookChanges } from "../../text/notebook-cells.ts";
import { type PhoneWord, phoneWord } from "../../phone/words.ts";
import { queueMessage } from "../../server/sessions.ts";
import { t } from "../../words.ts";
import type { MenuRow } from "../phone-menu.ts";
import { AnswerCard } from "./answer-card.ts";
import { draftOf, keepDraft } from "./answer-drafts.ts";
import { diffHeader, sidesSwitch } from "../files/diff-header.ts";
import type { CommentsGo, DiffElement } from "../files/diff-view.ts";
import { oddNote } from "./odd-note.ts";
import type { NotebookView } from "../files/notebook-view.ts";
import "../files/comment-bar.ts";
import "../files/diff-view.ts";
import "../files/notebook-view.ts";

/** A card that may ask about the change of a file, which can be edited and commented on before the answer. */
export abstract class EditCard extends AnswerCard {
  @state() protected isEditing = false;
  @state() protected isEdited = false;
  @state() protected comments: LineComment[] = [];
  /** Whether a notebook is shown as the text that it is. */
  @state() private isJson = false;
  @state() private chosen: Place | undefined;
  @query("isthmus-diff.main") protected diff: DiffElement | null | undefined;
  /** What became of comments that were sent without an answer. */
  @state() private said = "";
  /** What is odd in the change that is shown. */
  @state() private odd: readonly Odd[] = [];
  #compared: { before: string | undefined; after: string } | undefined;
  /** Id of the comment that was reached last. */
  #reached = 0;
  #notebook: { before: string | undefined; after: string; changes: NotebookChanges | undefined } | undefined;

  /** Whether the card shows a text that can be edited first. */
  protected abstract get isEdit(): boolean;
  /** Name of the file for the agent. */
  protected abstract get path(): string;
  /** The answers with which comments reach the agent. */
  protected abstract get commentsGo(): CommentsGo;
  /** Texts of the file as it is, and as it is proposed. */
  protected abstract get texts(): { before: string; after: string };
  /** Say which answers send comments. */
  protected abstract get commentNote(): string;
  /** The task whose session comments without an answer go to; empty if there is none. */
  protected get taskOfComments(): string {
    return "";
  }

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

  /** Note that an answer was stored; the card may have left the page before that was known, and kept a draft. */
  protected wasStored(subject: string): void {
    if (subject === this.subject) this.wasSent = true;
    keepDraft(subject, undefined);
  }

  protected override begin(): void {
    this.isEditing = this.isEdited = this.isJson = false;
    this.comments = [];
    this.chosen = undefined;
    this.said = "";
    this.odd = [];
    this.#compared = undefined;
    this.#reached = 0;
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

  protected override readAgain(): void {
    if (this.isEdit) this.readDiff();
    else super.readAgain();
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

  override get hasGestures(): boolean {
    return !this.isOver && this.diff?.isEditor === true;
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
    const { before, after } = this.texts;
    const comment = known ?? newComment(place, lineOf(place.side === "old" ? before : after, place.line));
    if (!known) this.comments = [...this.comments, comment];
    this.#reached = comment.id;
    this.said = "";
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
    keepComments(this.subject, this.comments);
  };

  /** Put comments to the lines where what they quote is in the texts that came; those kept in the browser may be older. */
  protected anchor(): void {
    const { before, after } = this.texts;
    this.comments = anchored(this.comments, before, after);
  }

  /** Return the comments for the agent that goes on after an acceptance; empty if there are none. */
  protected get acceptedWords(): string {
    return commentText(this.path, this.comments, ({ id }) => this.diff?.writtenLine(id));
  }

  /** Go to the next comment, or with -1 to the one before. */
  #goComment(by: 1 | -1): void {
    const said = saidComments(this.comments);
    const at = said.findIndex((one) => one.id === this.#reached);
    const next = said[at < 0 ? 0 : (at + by + said.length) % said.length];
    if (!next) return;
    this.#reached = next.id;
    void this.diff?.focusComment(next.id);
  }

  async #sendAlone(): Promise<void> {
    if (this.isOff || this.isOver || this.sending || !this.commentCount) return;
    const { subject } = this;
    this.sending = "alone";
    this.problem = "";
    try {
      await queueMessage(await sessionOfTask(this.taskOfComments), newId(), commentText(this.path, this.comments));
      keepComments(subject, []);
      if (subject !== this.subject) return;
      this.comments = [];
      this.said = t("sentAlone");
      this.sending = "";
    } catch (error) {
      if (subject === this.subject) this.say(error);
    }
  }

  #commentBar() {
    const count = this.commentCount;
    if (!count || this.isOver) return this.said ? html`<p class="hint" role="status">${this.said}</p>` : nothing;
    return html`<isthmus-comments
      .count=${count}
      .note=${this.commentNote}
      .text=${this.commentsGo === "answer" ? "" : this.saidBefore}
      ?canGoAlone=${this.taskOfComments !== ""}
      ?isBusy=${this.sending !== "" || this.isOff}
      @step=${(event: CustomEvent<1 | -1>) => this.#goComment(event.detail)}
      @alone=${() => void this.#sendAlone()}
    ></isthmus-comments>`;
  }

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
    this.#compare(before, after);
    return html`${diffHeader(path, counts, this.diff?.hunkCounts.all ?? 0, tools)}
    ${oddNote(this.odd, ({ line, hunk }) => this.diff?.showLine(line, hunk))}
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
              .commentsGo=${this.commentsGo}
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
              @touched=${({ detail }: CustomEvent<Touched>) => (detail === "edit" ? this.edit() : this.#comment())}
            ></isthmus-diff>`,
          )
    }`;
  }

  /** Find what is odd in a change. */
  #compare(before: string | undefined, after: string): void {
    const known = this.#compared;
    if (known?.before === before && known?.after === after) return;
    const texts = (this.#compared = { before, after });
    void compare(before ?? "", after).then((found) => {
      if (this.#compared === texts) this.odd = oddIn(before, after, found);
    });
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
    return html`${this.#commentBar()}
    ${kept ? html`<p class="hint" role="status">${t("hunksKept", all - kept, kept)}</p>` : nothing} ${super.hints()}`;
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
