import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { LIMITS, mustBeSeen } from "../../diff/change-size.ts";
import { answer } from "../../client.ts";
import { moon } from "../../frame/icons.ts";
import { isOnce, isRefusal } from "../../questions/options.ts";
import type { FileDiff } from "../../server/protocol.ts";
import { factsOf, shownPath } from "../../questions/question.ts";
import { type Waiting, acceptReview, folderOf, loadReview, rejectReview } from "../../server/reviews.ts";
import { visibleLine } from "../../text/safe.ts";
import type { Question } from "../../server/store.ts";
import { countLines } from "../../diff/diffs.ts";
import { type Word, t } from "../../words.ts";
import { AnswerCard } from "./answer-card.ts";
import { hasDraft, wasRead } from "./answer-drafts.ts";
import { diffHeader, sidesSwitch } from "../files/diff-header.ts";
import type { DiffElement } from "../files/diff-view.ts";
import { shownCounts } from "../files/counts.ts";
import "../../styles/review.css";

const NONE = { added: 0, removed: 0 };

/** A file of the list, as it was when the list was opened. */
interface Listed {
  key: string;
  path: string;
  review?: Waiting;
  question?: Question;
  old?: string | undefined;
  new?: string;
  /** Digest of what is listed. */
  state: string;
  isLooked: boolean;
  /** Whether its diff is drawn, if it is to be looked at here. */
  isDrawn?: boolean;
  /** Why it is not answered here, or how it was. */
  said: Word | undefined;
}

/**
 * The files of one agent or session, to be answered at once. Only what is in the list is answered, each file by its own id
 * and for what was shown of it; a file is accepted only once its diff was looked at.
 */
@customElement("isthmus-all")
export class AllFiles extends AnswerCard {
  @property({ attribute: false }) questions: Question[] = [];
  @property({ attribute: false }) reviews: Waiting[] = [];
  @property() name = "";
  @state() private files: Listed[] = [];
  /** The file whose change is shown. */
  @state() private shown = "";

  protected override get subject(): string {
    return `all/${this.name}`;
  }

  protected override readonly isOver = false;
  protected override readonly carriesWords = false;

  protected override begin(): void {
    this.files = [
      ...this.reviews.map((review): Listed => ({
        key: review.key,
        path: shownPath(review.about, folderOf(review)),
        review,
        state: "",
        isLooked: false,
        said: review.isQueued ? "queuedShort" : undefined,
      })),
      ...this.questions.map((question): Listed => {
        const { task, call } = question;
        const key = `${task.id}/${call.tool_call_id}`;
        const diff = call.confirmation_request?.file_edit_details;
        return {
          key,
          path: factsOf(call, task.workspace).object,
          question,
          old: diff?.old_content,
          new: diff?.new_content ?? "",
          state: digest(diff),
          isLooked: wasRead(key, ""),
          said: undefined,
        };
      }),
    ].map((file) =>
      hasDraft(file.key) || (file.new !== undefined && mustBeSeen(file.old ?? "", file.new))
        ? { ...file, said: "answerAlone" }
        : file,
    );
    this.shown = "";
    void Promise.all(this.files.filter((file) => file.review).map((file) => this.#load(file.key))).then(() => {
      this.read();
      // What was on the screen before stays there.
      const first = this.files.find((file) => file.isLooked) ?? this.files[0];
      if (first && !this.shown) this.#show(first.key);
    });
  }

  #put(key: string, change: Partial<Listed>): void {
    this.files = this.files.map((file) => (file.key === key ? { ...file, ...change } : file));
  }

  async #load(key: string): Promise<void> {
    try {
      const detail = await loadReview(key);
      this.#put(key, {
        old: detail.old ?? undefined,
        new: detail.new,
        state: detail.state,
        isLooked: wasRead(key, detail.state),
        ...(detail.before || mustBeSeen(detail.old ?? "", detail.new) ? { said: "answerAlone" as const } : {}),
      });
    } catch {
      this.#put(key, { said: "outcomeGone" });
    }
  }

  #look(key: string): void {
    if (this.files.find((file) => file.key === key)?.isLooked) return;
    this.unread();
    this.#put(key, { isLooked: true });
  }

  #drawn(key: string): void {
    this.#put(key, { isDrawn: true });
    this.unread();
    if (this.files.every((file) => !file.isLooked || file.isDrawn || this.#wasRead(file))) this.read();
  }

  #wasRead({ key, review, state }: Listed): boolean {
    return wasRead(key, review ? state : "");
  }

  get #open(): Listed[] {
    return this.files.filter((file) => !file.said && file.new !== undefined);
  }

  get #looked(): Listed[] {
    return this.#open.filter((file) => file.isLooked && (file.isDrawn || this.#wasRead(file)));
  }

  override render() {
    const open = this.#open;
    const looked = this.#looked;
    const isAll = looked.length === open.length;
    const at = this.files.findIndex((file) => file.key === this.shown);
    const title = t("allFilesOf", this.files.length, visibleLine(this.name, 80));
    return html`<article class="question all" aria-label=${title}>
      <section class="pane rail-files" aria-label=${t("files")}>
        <h2 tabindex="-1" dir="auto">${title}</h2>
        <p class="row sect num">
          <span>${t("countFiles", this.files.length)}</span><span class="right">${shownCounts(this.#sum())}</span>
        </p>
        <ul class="scroll">
          ${this.files.map((file) => this.#row(file))}
        </ul>
        <dl>
          <dt>${t("covers")}</dt>
          <dd>${t("allCovers")}</dd>
        </dl>
      </section>
      <div class="pane">
        ${this.files[at] ? this.#head(this.files[at]) : nothing}
        <div class="card-body" tabindex="-1">${this.files.map((file) => this.#diff(file))}</div>
        ${this.problems()} ${this.hints()}
        ${isAll ? nothing : html`<p class="hint" role="status">${t("notLooked", open.length - looked.length)}</p>`}
        <div class="actions">
          ${this.button(t("acceptFiles", looked.length), "y", "primary", this.sending === "accept", looked.length > 0, () => void this.#accept(), "", this.unseen !== undefined)}
          ${this.unseenButton()}
          ${isAll ? nothing : html`<button class="b" @click=${this.#lookAll}>${t("lookAll")}</button>`}
          ${this.button(t("rejectFiles", open.length), "n", "", this.sending === "reject", open.length > 0, () => void this.#reject())}
          <span class="right row wider">
            ${this.files.length > 1 ? html`<button class="b quiet" @click=${() => this.#go(1)}>${t("nextFile")} <kbd>]</kbd></button>` : nothing}
            <button class="b quiet" @click=${this.#close}>${t("close")} <kbd>esc</kbd></button></span
          >
        </div>
      </div>
    </article>`;
  }

  #head(file: Listed) {
    const diff = this.#diffOf(file.key);
    const tools = file.old === undefined || !diff ? nothing : sidesSwitch(diff.isSides, this.toggleSides);
    return diffHeader(file.path, this.#counts(file), diff?.hunkCounts.all ?? 0, tools);
  }

  #counts(file: Listed) {
    return file.new === undefined ? nothing : shownCounts(countLines(file.old ?? "", file.new));
  }

  #sum() {
    const counts = this.files.map((file) => (file.new === undefined ? NONE : countLines(file.old ?? "", file.new)));
    return counts.reduce((sum, one) => ({ added: sum.added + one.added, removed: sum.removed + one.removed }), NONE);
  }

  #diffOf(key: string): DiffElement | undefined {
    return [...this.querySelectorAll<DiffElement>("isthmus-diff")].find((diff) => diff.dataset.key === key);
  }

  #row(file: Listed) {
    const { key, path, said } = file;
    const isShown = key === this.shown;
    const unseen = this.#diffOf(key)?.unseen;
    const state = said ?? (file.isLooked ? "looked" : "notLookedAt");
    const words = !said && unseen && unseen.all > 1 ? t("partlySeen", unseen.seen, unseen.all) : t(state);
    const name = path.lastIndexOf("/") + 1;
    return html`<li class="file ${isShown ? "on" : ""}">
      <button class="cover" aria-current=${isShown ? "true" : nothing} @click=${() => this.#show(key)}>
        ${moon(said === "answeredHere" ? "all" : !file.isLooked ? "none" : unseen ? "part" : "all", words)}
        <span class="cut md" dir="auto">${path.slice(name)}</span>${this.#counts(file)}
        <span class="p cut" dir="auto">${path.slice(0, Math.max(0, name - 1))}${name ? " \u00b7 " : ""}${words}</span>
      </button>
    </li>`;
  }

  /** Once it was looked at, a change stays, so that it is known what of it was seen. */
  #diff({ key, path, old, new: after, isLooked }: Listed) {
    return after === undefined || !isLooked
      ? nothing
      : html`<isthmus-diff
          isAwaited
          data-key=${key}
          ?hidden=${key !== this.shown}
          ?isLarge=${this.#isLarge}
          .oldText=${old}
          .newText=${after}
          .path=${path}
          @shown=${() => this.#drawn(key)}
        ></isthmus-diff>`;
  }

  #show(key: string): void {
    this.shown = key;
    this.#look(key);
    void this.updateComplete.then(() => {
      this.querySelector(".card-body")?.scrollTo(0, 0);
      this.querySelector('.file [aria-current="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
      this.#diffOf(key)?.fit();
    });
  }

  #go(direction: 1 | -1): void {
    const at = this.files.findIndex((file) => file.key === this.shown);
    const next = this.files[(at + direction + this.files.length) % this.files.length];
    if (next) this.#show(next.key);
  }

  protected override tool(key: string): boolean {
    if (key === "]") this.#go(1);
    else if (key === "[") this.#go(-1);
    else return super.tool(key);
    return true;
  }

  #lookAll = (): void => {
    this.unread();
    this.files = this.files.map((file) => (file.said || file.new === undefined ? file : { ...file, isLooked: true }));
    if (this.files.every((file) => !file.isLooked || file.isDrawn || this.#wasRead(file))) this.read();
  };

  #close = (): void => {
    this.dispatchEvent(new CustomEvent("closed"));
  };

  /** Whether the files that are looked at here are a large change together. */
  get #isLarge(): boolean {
    const counts = this.#open
      .filter((file) => !this.#wasRead(file))
      .map((file) => countLines(file.old ?? "", file.new ?? ""));
    return counts.reduce((sum, { added, removed }) => sum + added + removed, 0) > LIMITS.lines;
  }

  async #accept(): Promise<void> {
    if (this.unseen) return;
    return this.#each("accept", this.#looked, async (file) => {
      if (file.review) {
        const said = await acceptReview(file.key, file.state);
        if (said.is === "changed") return "changedShort";
        this.#ended(file.key, said);
        return "answeredHere";
      }
      return this.#answer(file, isOnce);
    });
  }

  #reject(): Promise<void> {
    return this.#each("reject", this.#open, async (file) => {
      if (!file.review) return this.#answer(file, isRefusal);
      const said = await rejectReview(file.key);
      if (said.is === "ended") this.#ended(file.key, said);
      return "answeredHere";
    });
  }

  #ended(key: string, said: object): void {
    this.dispatchEvent(new CustomEvent("ended", { detail: { key, ...said }, bubbles: true, composed: true }));
  }

  async #answer({ key, question }: Listed, isWanted: typeof isOnce): Promise<Word> {
    if (!question) return "outcomeGone";
    const option = question.call.confirmation_request?.options.find(isWanted);
    if (!option) return "answerAlone";
    const row = await answer(question.task.id, question.call.tool_call_id, option.id);
    // What an answer changed of a later question was not listed.
    for (const call of row.pending) {
      const other = this.files.find((file) => file.key === `${row.id}/${call.tool_call_id}`);
      if (other && other.key !== key && digest(call.confirmation_request?.file_edit_details) !== other.state)
        this.#put(other.key, { said: "changedShort" });
    }
    this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
    return "answeredHere";
  }

  /** Answer the files one after the other; a failure ends it, and says so. */
  async #each(name: string, files: Listed[], act: (file: Listed) => Promise<Word>): Promise<void> {
    if (!this.isReady) return;
    this.sending = name;
    this.problem = "";
    try {
      for (const { key } of files) {
        const file = this.files.find((one) => one.key === key);
        if (file && !file.said) {
          const said = await act(file);
          this.#put(key, { said });
        }
      }
      this.sending = "";
      if (this.files.every((file) => file.said === "answeredHere" || !files.some((one) => one.key === file.key)))
        this.#close();
    } catch (error) {
      this.say(error);
    }
  }

  protected override told(): Promise<void> {
    return Promise.resolve();
  }

  protected override isAnswer(key: string): boolean {
    return key === "y" || key === "n";
  }

  protected override pressed(key: string): boolean {
    if (key === "y") void this.#accept();
    else if (key === "n") void this.#reject();
    else if (key === "Escape") this.#close();
    else return false;
    return true;
  }
}

function digest(diff: FileDiff | undefined): string {
  return JSON.stringify([diff?.file_path, diff?.old_content, diff?.new_content]);
}
