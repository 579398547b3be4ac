import { LitElement, css, html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { fitsEditor, mustBeSeen } from "../../diff/change-size.ts";
import { ChangeMap } from "../../diff/change-map.ts";
import { compare } from "../../diff/compare.ts";
import type { DiffView } from "../../diff/editor/diff-editor.ts";
import type { Choice, Hunk } from "../../diff/editor/diff-hunks.ts";

import type { LineComment, Place, WrittenLine } from "../../diff/editor/line-comments.ts";
import { type LineNumbers, changeRows } from "../../diff/long-rows.ts";
import { LONG_STYLES } from "../../diff/long-styles.ts";
import { LongView } from "../../diff/long-view.ts";
import { MAP_STYLES } from "../../diff/map-styles.ts";
import { exact } from "../../text/safe.ts";
import type { SeenState } from "../../diff/editor/editor-seen.ts";
import { t } from "../../words.ts";

const SIDES_FROM = 960;
const SIDES_KEY = "isthmus.sides";

/** The answers with which comments reach the agent. */
export type CommentsGo = "answer" | "rejection" | "nowhere";
const COMMENTS_GO = { answer: "goesWithAnswer", rejection: "goesWithRejection", nowhere: "goesNowhere" } as const;

/** What a diff is shown with anew, e.g. after the card has shown something else. */
export interface DiffDraft {
  text: string;
  hunks: readonly Hunk[];
}

/**
 * A diff. `text` is what will be written. If it `isOpen`, its hunks can be kept as they were and its lines commented on;
 * `edited`, `chosen` and `commented` say what the user did. If it is `editable`, the right side can be typed in. If it
 * `isAwaited` and large, `unseen` says what of it was not on the screen yet, and `seen` that more was.
 */
@customElement("isthmus-diff")
export class DiffElement extends LitElement {
  static override styles = css`
    :host {
      display: block;
      min-width: 0;
      background: var(--surface);
    }
    p {
      font: var(--t-sm) var(--font-ui);
      color: var(--text-2);
      padding: 12px 16px;
      margin: 0;
    }
    ${LONG_STYLES}
    ${MAP_STYLES}
  `;
  @property() oldText: string | undefined;
  @property() newText = "";
  @property() path = "";
  @property({ type: Boolean }) editable = false;
  /** The numbers of the lines, if the texts are parts of files; 0 for lines without one. */
  @property({ attribute: false }) numbers: LineNumbers | undefined;
  @property({ type: Boolean }) isOpen = false;
  @property({ attribute: false }) comments: readonly LineComment[] = [];
  /** The answers with which comments go back. */
  @property() commentsGo: CommentsGo = "answer";
  @property({ type: Boolean }) isAwaited = false;
  /** Whether it is a part of a large change, so that all of it is to be seen, too. */
  @property({ type: Boolean }) isLarge = false;
  @state() private hasFailed = false;
  text = "";
  /** Whether all of the diff is drawn; `shown` says when. */
  isShown = false;
  #view: DiffView | undefined;
  #long: LongView | undefined;
  #map: ChangeMap | undefined;
  #seen: SeenState | undefined;
  #hunks: readonly Hunk[] | undefined;
  #isLong = false;
  #sides = false;
  #takesFocus = false;
  #size = new ResizeObserver(() => this.fit());

  get isEdited(): boolean {
    return this.text !== this.newText && plain(this.text) !== plain(this.newText);
  }

  /** What is needed to show the same again. */
  get draft(): DiffDraft {
    return { text: this.text, hunks: this.#view?.hunks ?? [] };
  }

  /** The numbers of hunks that are to be seen, and of those that were; undefined once they all were, or need not. */
  get unseen(): { seen: number; all: number } | undefined {
    const counts = this.isAwaited ? (this.#long?.seen ?? this.#view?.seen)?.counts : undefined;
    return counts && counts.seen < counts.all ? counts : undefined;
  }

  /** Whether it can be edited, and commented on. */
  get isEditor(): boolean {
    return !this.#isLong;
  }

  /** Whether it is shown side by side. */
  get isSides(): boolean {
    return this.#sides;
  }

  goUnseen(): void {
    (this.#long ?? this.#view)?.goUnseen();
  }

  /** The numbers of hunks, and of those that are kept as they were. */
  get hunkCounts(): { all: number; kept: number } {
    const hunks = this.#view?.hunks ?? [];
    return { all: hunks.length, kept: hunks.filter((hunk) => hunk.isKept).length };
  }

  /** Change between side by side and one column, for this device. */
  toggle(): void {
    localStorage.setItem(SIDES_KEY, this.#sides ? "no" : "yes");
    this.fit();
  }

  undo(): void {
    this.edit({ text: this.newText, hunks: [] });
  }

  /** Replace what will be written, and the choices of hunks. */
  edit({ text, hunks }: DiffDraft): void {
    this.text = text;
    this.#clear();
    this.#hunks = hunks;
    this.#draw();
    this.#tell("edited");
  }

  /** Scroll to a line of the proposal, or where the change is shown in parts, to the hunk that it is in. */
  showLine(line: number, hunk: number): void {
    this.#long?.showHunk(hunk);
    this.#view?.showLine(line);
  }

  goHunk(direction: 1 | -1): void {
    (this.#long ?? this.#view)?.goHunk(direction);
  }

  decide(choice: Choice): void {
    this.#view?.decide(choice);
  }

  /** Return the line that a new comment is about. */
  place(isOld: boolean): Place | undefined {
    return this.#view?.place(isOld);
  }

  /** Put the cursor into the text to be written, as soon as that is shown. */
  focusText(): void {
    this.#takesFocus = !this.#view;
    this.#view?.focusText();
  }

  /** Return the line that a comment on the proposal stands below in what will be written. */
  writtenLine(id: number): WrittenLine | undefined {
    return this.#view?.writtenLine(id);
  }

  async focusComment(id: number): Promise<void> {
    await this.updateComplete;
    this.#view?.focusComment(id);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#size.observe(this);
    // It was moved, e.g. among the rows of a session: what was drawn was cleared away.
    if (this.hasUpdated) this.#draw();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#size.disconnect();
    this.#hunks = this.#view?.hunks ?? this.#hunks;
    this.#clear();
    this.isShown = false;
  }

  #clear(): void {
    this.#seen = this.#view?.seen?.state ?? this.#seen;
    this.#view?.destroy();
    this.#long?.destroy();
    this.#map?.destroy();
    this.#view = this.#long = this.#map = undefined;
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("oldText") || changed.has("newText") || changed.has("hasFailed"))
      this.#isLong = this.hasFailed || !fitsEditor(this.oldText ?? "", this.newText);
  }

  override updated(changed: Map<string, unknown>): void {
    if (["oldText", "newText", "path", "isOpen", "hasFailed", "isLarge"].some((name) => changed.has(name))) {
      if (changed.has("newText")) {
        this.text = this.newText;
        this.#clear();
        this.#hunks = [];
      }
      if (changed.has("newText") || changed.has("oldText")) {
        this.#clear();
        this.#seen = undefined;
      }
      this.#sides = this.#wantsSides();
      this.#draw();
      return;
    }
    if (changed.has("editable")) this.#view?.setEditable(this.editable);
    if (changed.has("comments")) this.#view?.setComments(this.comments);
  }

  override render() {
    const map = html`<aside class="map-place" aria-hidden="true"></aside>`;
    if (!this.#isLong)
      return html`${map}
        <div></div>`;
    return html`${map}${this.isOpen || this.hasFailed ? html`<p>${t(this.hasFailed ? "plainDiff" : "tooLarge")}</p>` : nothing}
      <div class="long" role="region" tabindex="0" aria-label=${t("asItWillBe", exact(this.path))}></div>`;
  }

  #wantsSides(): boolean {
    const chosen = localStorage.getItem(SIDES_KEY);
    const isWide = this.clientWidth >= SIDES_FROM;
    return this.oldText !== undefined && (chosen === "yes" || (chosen !== "no" && isWide)) && this.clientWidth >= 480;
  }

  /** Draw anew if the width or the choice of sides of this device wants it. */
  fit(): void {
    if (this.#view && this.#wantsSides() !== this.#sides) {
      this.#sides = !this.#sides;
      this.#draw();
    }
  }

  #draw(): void {
    this.#hunks = this.#view?.hunks ?? this.#hunks;
    this.#clear();
    this.isShown = false;
    if (this.#isLong) {
      void this.#drawLong();
      return;
    }
    import("../../diff/editor/diff-editor.ts")
      .then(({ showDiff }) => {
        const root = this.shadowRoot;
        if (!this.isConnected || this.#view || !root?.querySelector("div")) return;
        const { oldText, newText: proposed, path } = this;
        const sides = this.#sides;
        const digits = String(Math.max(lineCount(oldText), lineCount(proposed), ...(this.numbers?.after ?? []))).length;
        this.style.setProperty("--digits", String(digits));
        const seen = this.isAwaited && (this.#seen ?? (this.isLarge || mustBeSeen(oldText ?? "", proposed)));
        this.#view = showDiff(root, {
          ...(this.numbers ? { numbers: this.numbers } : {}),
          before: oldText ?? "",
          proposed,
          after: this.text,
          hunks: this.#hunks,
          path,
          sides,
          isNew: oldText === undefined,
          isOpen: this.isOpen,
          editable: this.editable,
          seen,
          label: {
            caption: { before: t("asItIsNow"), after: t("asWritten"), mine: (count) => t("mineLines", grouped(count)) },
            before: t("asItIs", exact(path)),
            after: t("asItWillBe", exact(path)),
            line: { added: t("addedLine"), removed: t("removedLine"), mine: t("edited"), kept: t("keptHunk") },
            hunk: {
              place: (number, all) => t("hunkOf", number, all),
              lines: (from, to) =>
                from === to ? t("hunkLine", grouped(from)) : t("hunkLines", grouped(from), grouped(to)),
              alike: (count) => t("alikeLines", grouped(count)),
              take: t("accept"),
              keep: t("keepHunk"),
              taken: t("takenHunk"),
              kept: t("keptHunk"),
            },
            comment: {
              title: ({ side, line }) =>
                `${t(side === "old" ? "commentOld" : "commentNew", line)} \u00b7 ${t(COMMENTS_GO[this.commentsGo])}`,
              remove: t("remove"),
            },
          },
          onChange: (text) => {
            this.text = text;
            this.#tell("edited");
          },
          onChoose: (place) => this.#tell("chosen", place),
          onComment: (id, text) => this.#tell("commented", { id, text }),
          onLeave: () => this.#tell("left"),
          onTouched: (what) => this.#tell("touched", what),
          onSeen: () => this.#noteSeen(),
        });
        this.#view.setComments(this.comments);
        if (this.#takesFocus) this.focusText();
        this.#show();
      })
      .catch(() => {
        this.hasFailed = true;
      });
  }

  async #drawLong(): Promise<void> {
    const { oldText = "", newText } = this;
    const hunks = await compare(oldText, newText);
    const root = this.shadowRoot?.querySelector<HTMLElement>(".long");
    if (
      !root ||
      !this.isConnected ||
      !this.#isLong ||
      this.#long ||
      oldText !== (this.oldText ?? "") ||
      newText !== this.newText
    )
      return;
    const words = {
      alikeCharacters: (count: number) => t("alikeCharacters", grouped(count)),
      noNewline: t("noNewline"),
    };
    const rows = changeRows(oldText, newText, hunks, words, this.numbers);
    this.#long = new LongView(
      root,
      rows.hunks,
      rows.alike,
      {
        hunk: (number, all, line) => `${t("hunkOf", number, all)} \u00b7 ${t("lineNumber", grouped(line))}`,
        alike: (lines) => t("alikeLines", grouped(lines)),
        added: t("addedLine"),
        removed: t("removedLine"),
      },
      () => this.#noteSeen(),
    );
    this.#show();
  }

  #show(): void {
    const change = this.#long ?? this.#view;
    const place = this.shadowRoot?.querySelector<HTMLElement>(".map-place");
    if (change && place) this.#map = new ChangeMap(this, place, change);
    this.isShown = true;
    this.dispatchEvent(new CustomEvent("shown"));
  }

  #noteSeen(): void {
    this.#map?.soon();
    this.#tell("seen");
  }

  #tell(what: "edited" | "chosen" | "commented" | "left" | "touched" | "seen", detail?: unknown): void {
    this.dispatchEvent(new CustomEvent(what, { detail, bubbles: true, composed: true }));
  }
}

function lineCount(text: string | undefined): number {
  return (text?.match(/\n/g)?.length ?? 0) + 1;
}

const NUMBERS = new Intl.NumberFormat();

function grouped(number: number): string {
  return NUMBERS.format(number);
}

/** Return a text with the line ends of the editor. */
function plain(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}
