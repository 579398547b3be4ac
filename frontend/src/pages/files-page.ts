import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import {
  type Selection,
  type ShownFile,
  leaveFile,
  linesOf,
  mentionFile,
  selectInFile,
  viewFile,
} from "../server/files.ts";
import { FileSearch } from "../server/file-search.ts";
import { icon } from "../frame/icons.ts";
import type { Companion, OpenFile, ReviewStore } from "../server/reviews.ts";
import { problemOf } from "../problems/problem.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { ApiError } from "../server/session.ts";
import { t } from "../words.ts";
import { PageElement } from "../parts/base.ts";
import { f } from "../frame/words.ts";
import type { FileElement } from "../parts/files/file-viewer.ts";
import "../parts/files/file-viewer.ts";
import "../styles/files.css";
import { isComposing, isForPage } from "../frame/keys.ts";
import { codeText } from "../parts/code-text.ts";

/** Time in ms for which a selection rests before it is sent. */
const PAUSE_MS = 120;

/**
 * The files of a companion whose editor is this page. What is open here is open in the companion, and what is selected
 * is what its agents get as the user's selection.
 */
@customElement("isthmus-files")
export class FilesPage extends PageElement {
  @property({ attribute: false }) reviews!: ReviewStore;
  @property({ type: Number }) version = 0;
  @state() private companion = "";
  @state() private shown: ShownFile | undefined;
  @state() private said = "";
  @state() private problem = "";
  @state() private isOpen = false;
  /** The selection that the companion has confirmed. */
  @state() private confirmed: Selection | null = null;
  #search = new FileSearch((error) => {
    if (error !== undefined) this.#fail(error);
    this.requestUpdate();
    if (error === undefined && this.#search.wasEntered()) void this.updateComplete.then(() => this.#enter());
  });
  #wanted = "";
  /** File that was just closed here; the list of open files may still have it. */
  #left = "";
  /** Whether the companion has listed the shown file as open, so that its absence means that it was closed. */
  #isListed = false;
  /** State in which the companion listed it last. */
  #listed = "";
  #isLoading = false;
  #selecting: Selection | undefined;
  #selects = 0;
  #isSending = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.#search.stop();
    clearTimeout(this.#selects);
  }

  get #page(): Companion | undefined {
    return this.reviews.filePages.find((one) => one.id === this.companion);
  }

  get #open(): OpenFile[] {
    return this.#page?.files ?? [];
  }

  override willUpdate(): void {
    if (!this.#page) {
      const next = this.reviews.filePages[0]?.id ?? "";
      if (next !== this.companion) this.#choose(next);
      return;
    }
    const shown = this.shown;
    if (!shown) {
      const active = this.#open.find((file) => file.active);
      if (!this.#open.some((file) => file.path === this.#left)) this.#left = "";
      if (active && active.path !== this.#left && !this.#wanted && !this.problem) void this.#view(active.path, true);
      return;
    }
    const file = this.#open.find((one) => one.path === shown.path);
    if (file) {
      this.#isListed = true;
      // Written since: it is read again, without taking the focus from another file.
      const isNews = file.state !== this.#listed;
      this.#listed = file.state;
      if (isNews && file.state !== shown.state && !this.#isLoading) void this.#view(shown.path, false);
    } else if (this.#isListed && !this.#isLoading) this.#forget();
  }

  #choose(companion: string): void {
    this.companion = companion;
    this.#forget();
    this.#search.clear();
    if (companion) this.#search.find(companion, this.#search.words);
  }

  #forget(): void {
    this.shown = undefined;
    this.confirmed = null;
    this.#wanted = "";
    this.#isListed = false;
    this.#listed = "";
    this.isOpen = false;
  }

  #fail(error: unknown): void {
    this.problem = problemOf(error);
  }

  /** Show a file. With `isChosen` the user wants it; otherwise it is read again. */
  async #view(path: string, isChosen: boolean): Promise<void> {
    this.#wanted = path;
    this.#left = "";
    this.#isLoading = true;
    clearTimeout(this.#selects);
    this.#selecting = undefined;
    if (isChosen) this.problem = this.said = "";
    try {
      const found = await viewFile(this.companion, path, isChosen);
      if (this.#wanted !== path) return;
      if (!isChosen && this.shown) this.said = t("writtenMeanwhile");
      if (this.shown?.path !== path) this.#isListed = false;
      this.shown = found;
      this.confirmed = found.selection;
      this.reviews.refresh();
    } catch (error) {
      if (this.#wanted === path) {
        this.#forget();
        this.#fail(error);
      }
    } finally {
      if (this.#wanted === path || !this.#wanted) this.#isLoading = false;
    }
  }

  /** Send the newest selection; while one is under way, the next waits. */
  async #send(): Promise<void> {
    const selection = this.#selecting;
    const shown = this.shown;
    if (!selection || !shown || this.#isSending) return;
    this.#selecting = undefined;
    this.#isSending = true;
    try {
      const answer = await selectInFile(this.companion, shown.path, shown.state, selection);
      if (this.shown === shown) this.confirmed = answer.selection;
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) void this.#view(shown.path, false);
      else this.#fail(error);
    } finally {
      this.#isSending = false;
      if (this.#selecting) void this.#send();
    }
  }

  #selected = (event: CustomEvent<Selection>): void => {
    this.#selecting = event.detail;
    this.said = "";
    clearTimeout(this.#selects);
    this.#selects = window.setTimeout(() => void this.#send(), PAUSE_MS);
  };

  async #mention(): Promise<void> {
    const shown = this.shown;
    if (!shown || shown.text === null) return;
    clearTimeout(this.#selects);
    const selection = this.#selecting ?? this.confirmed;
    const lines = selection ? linesOf(selection) : null;
    try {
      await this.#send();
      const { delivered, problem } = await mentionFile(this.companion, shown.path, lines);
      const name = this.#name(shown.path);
      const what = !lines
        ? name
        : lines[0] === lines[1]
          ? t("lineOf", name, lines[0] + 1)
          : t("linesOf", name, lines[0] + 1, lines[1] + 1);
      this.said = delivered ? t("mentioned", what) : visibleLine(problem, 300);
      this.problem = "";
    } catch (error) {
      this.#fail(error);
    }
  }

  async #leave(path: string): Promise<void> {
    this.#left = path;
    try {
      await leaveFile(this.companion, path);
      if (this.shown?.path === path) {
        this.#forget();
        this.querySelector<HTMLElement>(".find input")?.focus();
      }
      this.reviews.refresh();
    } catch (error) {
      this.#fail(error);
    }
  }

  #name(path: string): string {
    const folder = this.#page?.folders.find((one) => path.startsWith(`${one.replace(/\/$/, "")}/`));
    return visible(folder === undefined ? path : path.slice(folder.replace(/\/$/, "").length + 1));
  }

  async #show(path: string): Promise<void> {
    this.isOpen = true;
    await this.#view(path, true);
    await this.updateComplete;
    this.querySelector<FileElement>("isthmus-file")?.focus();
  }

  override render() {
    const page = this.#page;
    const search = this.#search;
    const shown = this.shown;
    // While something is sought only what fits is listed, so that Enter opens the best.
    const open = new Set(this.#open.map((file) => file.path));
    const first = search.words.trim() ? [] : [...open];
    const others = search.found.filter((file) => !first.includes(file.path));
    return html`<main class="contents">
      <section class="pane inbox ${this.isOpen ? "behind" : ""}" aria-label=${t("fileLists")}>
        <div class="head">
          <h1>${t("files")}</h1>
          ${
            this.reviews.filePages.length > 1
              ? html` <select
                  class="field right"
                  aria-label=${t("folder")}
                  @change=${(event: Event) => this.#choose((event.target as HTMLSelectElement).value)}
                >
                  ${this.reviews.filePages.map((one) => html`<option value=${one.id} ?selected=${one.id === this.companion}>${visibleLine(one.folders.join(", "), 60)}</option>`)}
                </select>`
              : nothing
          }
        </div>
        ${
          page
            ? html`<div class="find">
                  <input
                    class="field"
                    type="search"
                    placeholder=${t("searchFiles")}
                    aria-label=${t("searchFiles")}
                    spellcheck="false"
                    autocomplete="off"
                    maxlength="200"
                    @input=${(event: Event) => search.find(this.companion, (event.target as HTMLInputElement).value)}
                  />
                </div>
                <ul class="scroll">
                  ${first.length ? html`<li class="sect">${t("openFiles")}</li>` : nothing}
                  ${first.map((path) => this.#row(path, true))}
                  ${others.length ? html`<li class="sect">${t("allFiles")}</li>` : nothing}
                  ${others.map((file) => this.#row(file.path, open.has(file.path)))}
                  ${search.isDone && !search.found.length ? html`<li class="empty"><p class="t3">${t("noFileFound")}</p></li>` : nothing}
                  ${search.hasMore ? html`<li class="empty"><p class="t3">${t("moreFiles")}</p></li>` : nothing}
                </ul>`
            : html`<div class="empty">
                ${
                  this.reviews.isLoaded
                    ? html`<p>${codeText(t("noFilePage"))}</p>`
                    : this.reviews.isReached
                      ? html`<p>${t("connecting")}</p>`
                      : html`<p>${f("notLoaded")}</p>
                          <p class="t3">${f("triesAgain")}</p>`
                }
              </div>`
        }
      </section>
      <section
        class="pane surface ${this.isOpen ? "" : "behind"}"
        aria-label=${shown ? this.#name(shown.path) : t("files")}
      >
        ${
          shown
            ? this.#file(shown)
            : html`<button
                  class="b small quiet icon narrow-only"
                  aria-label=${t("back")}
                  @click=${() => {
                    this.isOpen = false;
                  }}
                >
                  ${icon("back")}
                </button>
                <div class="empty big">
                  ${
                    this.problem
                      ? html`<p class="problem" role="alert">${this.problem}</p>`
                      : page &&
                        html`<p>${t("chooseFile")}</p>
                          <p class="t3">${t("chooseFileNext")}</p>`
                  }
                </div>`
        }
      </section>
    </main>`;
  }

  #row(path: string, isOpen: boolean) {
    const name = this.#name(path);
    const cut = name.lastIndexOf("/");
    const isShown = this.shown?.path === path;
    return html`<li class="file ${isShown ? "on" : ""}" aria-current=${isShown ? "true" : nothing}>
      <button class="cover" @click=${() => void this.#show(path)}>
        <b class="cut" dir="auto">${name.slice(cut + 1)}</b
        ><span class="t3 cut" dir="auto">${cut < 0 ? "" : name.slice(0, cut)}</span>
      </button>
      ${isOpen ? html`<button class="b small quiet icon" aria-label=${t("closeFile", name)} @click=${() => void this.#leave(path)}>${icon("close")}</button>` : nothing}
    </li>`;
  }

  #file(shown: ShownFile) {
    const name = this.#name(shown.path);
    const { size } = shown;
    const lines = this.confirmed ? linesOf(this.confirmed) : null;
    const where =
      !this.confirmed || shown.text === null
        ? ""
        : !lines
          ? t("cursorAt", this.confirmed[0] + 1)
          : lines[0] === lines[1]
            ? t("lineSelected", lines[0] + 1)
            : t("linesSelected", lines[0] + 1, lines[1] + 1);
    return html` <div class="head">
        <button
          class="b small quiet icon narrow-only"
          aria-label=${t("back")}
          @click=${() => {
            this.isOpen = false;
          }}
        >
          ${icon("back")}
        </button>
        <code class="cut" dir="auto">${name}</code>
        <span class="grow"></span>
        ${shown.text === null ? nothing : html`<button class="b small" @click=${() => void this.#mention()}>${t("mention")} <kbd>m</kbd></button>`}
      </div>
      ${
        shown.text === null
          ? html`<div class="empty big">
              <p>${t(shown.why === "binary" ? "binaryFile" : "largeFile", name, size)}</p>
            </div>`
          : html`<isthmus-file
              .text=${shown.text}
              .path=${shown.path}
              .state=${shown.state}
              .selection=${shown.selection}
              @selected=${this.#selected}
              @key=${this.#key}
            ></isthmus-file>`
      }
      <div class="file-foot">
        <span role="status">${this.said || where}</span
        >${this.problem ? html`<span class="del" role="alert">${this.problem}</span>` : nothing}
      </div>`;
  }

  /** Open the first file of the list, once it is that of what was typed. */
  #enter(): void {
    if (this.#search.enter()) this.querySelector<HTMLElement>(".file .cover")?.click();
  }

  #key = (event: CustomEvent<string>): void => this.#act(event.detail);

  #act(key: string): void {
    if (key === "m") void this.#mention();
    else if (key === "x" && this.shown) void this.#leave(this.shown.path);
    else if (key === "Escape") {
      this.isOpen = false;
      void this.updateComplete.then(() =>
        (this.querySelector<HTMLElement>(".file.on .cover") ?? this.querySelector<HTMLElement>(".find input"))?.focus(),
      );
    } else if (key === "/") {
      this.isOpen = false;
      void this.updateComplete.then(() => this.querySelector<HTMLElement>(".find input")?.focus());
    }
  }

  #press = (event: KeyboardEvent): void => {
    const field = this.querySelector<HTMLInputElement>(".find input");
    const isInField = field !== null && event.target === field;
    const step =
      event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    if (isInField && (event.key === "ArrowDown" || event.key === "Enter") && !isComposing(event)) {
      if (event.key === "Enter") this.#enter();
      else this.querySelector<HTMLElement>(".file .cover")?.focus();
    } else if (!isForPage(event)) return;
    else if (step) {
      const rows = [...this.querySelectorAll<HTMLElement>(".file .cover")];
      const at = rows.indexOf(document.activeElement as HTMLElement);
      if (at <= 0 && event.key === "ArrowUp") field?.focus();
      else rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
    } else if (["m", "x", "/", "Escape"].includes(event.key)) this.#act(event.key);
    else return;
    event.preventDefault();
  };
}
