import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../icons.ts";
import { isEnter, isForPage, isMeant } from "../keys.ts";
import { PageElement, READ_MS, go } from "../parts/base.ts";
import { shownCounts } from "../parts/counts.ts";
import { type HunkWish, hunkKey } from "../parts/written-file.ts";
import { PAGE } from "../place.ts";
import { shownPath } from "../question.ts";
import type { ReviewStore } from "../reviews.ts";
import { visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { problemOf } from "../sending.ts";
import { clock, t } from "../words.ts";
import { Marks } from "../written/marks.ts";
import { captions, counted, decidedIn, markOf, nameOf } from "../written/turns.ts";
import "../styles/written.css";
import {
  type Listing,
  type Selection,
  type WrittenDiff,
  type WrittenFile,
  type WrittenTurn,
  keep,
  loadDiff,
  loadListing,
  takeBack,
  undo,
  writesOf,
} from "../written/written.ts";

/** Number of files of a turn that are shown at first, and with each wish for more. */
const SHOWN = 30;
/** Number of files that are asked for at once. */
const AT_ONCE = 4;

const diffKey = (turn: number, path: string): string => `${turn}\n${path}`;

/** What agents wrote without a review at one companion: by turn and hunk, to be kept or undone. */
@customElement("isthmus-written")
export class WrittenPage extends PageElement {
  @property() companion = "";
  @property({ attribute: false }) reviews!: ReviewStore;
  @property({ type: Number }) version = 0;
  @state() private listing: Listing | undefined;
  @state() private chosen = 0;
  @state() private current = "";
  @state() private busy = "";
  @state() private problems: string[] = [];
  @state() private hasEnded = false;
  @state() private isOpen = false;
  /** The turn whose undo is to be confirmed. */
  @state() private asked = 0;
  @state() private limit = SHOWN;
  @state() private drawn = 0;
  /** Whether the writes that are shown were on the screen long enough to be decided about. */
  @state() private isRead = false;
  #reading = 0;
  #diffs = new Map<string, WrittenDiff>();
  #marks = new Marks();
  #count = -1;
  #wasReached = true;
  #isLoading = false;
  #isBehind = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    clearTimeout(this.#reading);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("companion")) {
      this.listing = undefined;
      this.hasEnded = false;
      this.#diffs.clear();
      this.#marks.clear();
      this.#count = -1;
    }
    const { isReached } = this.reviews;
    const count = this.#entry?.written?.count ?? 0;
    if (isReached && (count !== this.#count || !this.#wasReached)) {
      this.#count = count;
      void this.#load();
    }
    this.#wasReached = isReached;
  }

  get #entry() {
    return this.reviews.companions.find((one) => one.id === this.companion);
  }

  get #turn(): WrittenTurn | undefined {
    return this.listing?.turns.find((turn) => turn.number === this.chosen);
  }

  get #isOff(): boolean {
    return !this.reviews.isReached || this.busy !== "";
  }

  /** Whether a decision about more than marks can be sent now. */
  get #isReady(): boolean {
    return !this.#isOff && this.isRead;
  }

  /** Ask for the list, and for the files of the chosen turn as far as they may have changed. */
  async #load(): Promise<void> {
    if (this.#isLoading) {
      this.#isBehind = true;
      return;
    }
    this.#isLoading = true;
    const { companion } = this;
    try {
      do {
        this.#isBehind = false;
        const listing = await loadListing(companion);
        if (companion !== this.companion) return;
        this.#take(listing);
        await this.#loadFiles();
      } while (this.#isBehind);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.hasEnded = true;
      else if (!(error instanceof ApiError) || error.status !== 0) this.problems = [problemOf(error)];
    } finally {
      this.#isLoading = false;
    }
    if (companion !== this.companion) void this.#load();
  }

  #take(listing: Listing): void {
    if (!this.listing || writesOf(listing) !== writesOf(this.listing)) {
      this.isRead = false;
      clearTimeout(this.#reading);
      this.#reading = window.setTimeout(() => {
        this.isRead = true;
      }, READ_MS);
    }
    this.listing = listing;
    this.hasEnded = false;
    const { turns } = listing;
    if (!turns.some((turn) => turn.number === this.chosen))
      this.chosen = (turns.find((turn) => turn.number > this.chosen) ?? turns.at(-1))?.number ?? 0;
    if (!turns.some((turn) => turn.number === this.asked)) this.asked = 0;
    this.#marks.limit(turns.flatMap((turn) => turn.files.map(({ path }) => ({ turn: turn.number, path }))));
  }

  async #loadFiles(): Promise<void> {
    const { companion, listing } = this;
    const turn = this.#turn;
    if (!listing || !turn) return;
    const wanted = turn.files
      .slice(0, this.limit)
      .filter(({ path }) => this.#diffs.get(diffKey(turn.number, path))?.state !== listing.state);
    const load = async (): Promise<void> => {
      for (let file = wanted.shift(); file && companion === this.companion; file = wanted.shift()) {
        try {
          const diff = await loadDiff(companion, file.path, turn.number);
          this.#diffs.set(diffKey(turn.number, file.path), diff);
          this.#marks.prune(diff);
        } catch (error) {
          // It was decided about meanwhile: the next list does not have it.
          if (!(error instanceof ApiError) || error.status !== 403) throw error;
          this.#isBehind = true;
        }
        this.drawn += 1;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, load));
  }

  override render() {
    const { listing } = this;
    const turns = listing?.turns ?? [];
    return html`<main class="contents">
      <section class="pane turns ${this.isOpen ? "behind" : ""}" aria-label=${t("turnsList")}>
        ${this.#side(listing)}
      </section>
      <section class="pane surface written ${this.isOpen ? "" : "behind"}" aria-label=${t("choosePart")}>
        ${this.#head(listing)}
        ${this.reviews.isReached ? nothing : html`<p class="banner" role="status">${t("offline")}</p>`}
        <div
          class="scroll"
          tabindex="-1"
          @wished=${this.#wished}
          @reached=${(event: CustomEvent<string>) => {
            this.current = event.detail;
          }}
        >
          ${this.problems.map((problem) => html`<p class="problem" role="alert">${problem}</p>`)}
          ${
            this.hasEnded
              ? html`<p class="empty" role="status">${t("companionGone")}</p>`
              : !listing
                ? html`<p class="empty" role="status">${t("connecting")}</p>`
                : turns.length
                  ? turns.map((turn) => this.#section(turn))
                  : this.#empty(listing)
          }
        </div>
        ${turns.length && !this.hasEnded ? this.#actions() : nothing}
      </section>
    </main>`;
  }

  /** The turns, with the files of the chosen one, and what was undone. */
  #side(listing: Listing | undefined) {
    const turns = listing?.turns ?? [];
    const files = new Set(turns.flatMap((turn) => turn.files.map((file) => file.path))).size;
    const total = { added: 0, removed: 0 };
    for (const { added, removed } of turns) {
      total.added += added;
      total.removed += removed;
    }
    return html`<div class="head">
        <a class="b small quiet icon" href=${PAGE} aria-label=${t("back")}>${icon("back")}</a>
        <h2 class="cut" dir="auto">${this.#folder}</h2>
      </div>
      <div class="scroll" tabindex="0">
        ${listing && listing.since > 0 ? html`<p class="sm t2 about-turns">${t("lookedAt", clock(listing.since))}</p>` : nothing}
        ${listing?.partial ? html`<p class="sm t2 about-turns">${t("partlyFollowed")}</p>` : nothing}
        ${
          turns.length
            ? html`<p class="sm t2 about-turns phone-only">${t("undoCanBack")}</p>
                <div class="sect row">
                  <span
                    >${counted(turns.length, "oneTurn", "countTurns")}, ${counted(files, "oneFile", "countFiles")}</span
                  ><span class="right">${shownCounts(total)}</span>
                </div>`
            : nothing
        }
        <ul>
          ${turns.map((turn) => this.#turnRow(turn))}
        </ul>
        ${
          listing?.undos.length
            ? html`<h3 class="sect">${t("undone")}</h3>
                <ul>
                  ${listing.undos
                    .slice(-5)
                    .reverse()
                    .map(
                      (one) =>
                        html` <li class="undone-row">
                          <span class="cut" dir="auto">${one.files.map((path) => this.#path(path)).join(", ")}</span
                          ><time class="xs t3 num">${clock(one.at)}</time>
                          <button
                            class="b small quiet"
                            aria-disabled=${this.#isOff}
                            @click=${() => this.#takeBack(one.number)}
                          >
                            ${t("takeBackHunk")}
                          </button>
                        </li>`,
                    )}
                </ul>`
            : nothing
        }
      </div>`;
  }

  #turnRow(turn: WrittenTurn) {
    const isChosen = turn.number === this.chosen;
    const { all, done } = decidedIn(turn, this.#marks);
    const count = counted(turn.files.length, "oneFile", "countFiles");
    return html`<li class="item ${isChosen ? "on" : ""}" aria-current=${isChosen ? "true" : nothing}>
      <button class="cover" @click=${() => this.#choose(turn.number)}>
        <span class="turn-name"
          >${markOf(turn, this.#marks)}<b class="cut" dir="auto">${nameOf(turn)}</b
          ><time class="xs t3 num">${clock(turn.began_at)}</time></span
        >
        <span class="xs t3 turn-counts"
          >${turn.working ? t("soFar", count) : count} ·
          ${shownCounts(turn)}${done ? html` · ${t("decidedOf", done, all)}` : nothing}</span
        >
      </button>
    </li>`;
  }

  #head(listing: Listing | undefined) {
    const turns = listing?.turns ?? [];
    const at = turns.findIndex((turn) => turn.number === this.chosen);
    return html`<div class="head">
      <button
        class="b small quiet icon narrow-only"
        aria-label=${t("turnsList")}
        @click=${() => {
          this.isOpen = false;
        }}
      >
        ${icon("back")}
      </button>
      <h1 class="cut">${t("sinceLooked")}</h1>
      ${listing && listing.since > 0 ? html`<span class="sm t3 num wide-only">${t("toNow", clock(listing.since))}</span>` : nothing}
      ${
        turns.length
          ? html`<span class="right row"
              ><span class="sm t2 num"
                >${t("turnPlace", at + 1, turns.length)}<span class="wide-only">${this.#hunkPlace}</span></span
              >
              <button
                class="b small quiet icon"
                aria-label=${t("previousTurn")}
                ?disabled=${at <= 0}
                @click=${() => this.#step(-1)}
              >
                ${icon("up")}
              </button>
              <button
                class="b small quiet icon"
                aria-label=${t("nextTurn")}
                ?disabled=${at < 0 || at >= turns.length - 1}
                @click=${() => this.#step(1)}
              >
                ${icon("next")}
              </button></span
            >`
          : nothing
      }
    </div>`;
  }

  /** Which of the hunks of the chosen turn keys are for. */
  get #hunkPlace(): string {
    const keys = (this.#turn?.files ?? []).flatMap(({ path }) =>
      (this.#diffs.get(diffKey(this.chosen, path))?.hunks ?? []).map((hunk) => hunkKey(this.chosen, path, hunk.id)),
    );
    const at = keys.indexOf(this.current);
    return at < 0 ? "" : ` · ${t("hunkPlace", at + 1, keys.length)}`;
  }

  #empty(listing: Listing) {
    return html`<div class="empty big">
      <p role="status">${listing.since > 0 ? t("nothingWritten", clock(listing.since)) : t("nothingRecorded")}</p>
      ${listing.problem ? html`<p class="t3 sm" dir="auto">${visibleLine(listing.problem)}</p>` : listing.following ? nothing : html`<p class="t3 sm">${t("notFollowing")}</p>`}
    </div>`;
  }

  #section(turn: WrittenTurn) {
    const isChosen = turn.number === this.chosen;
    return html`<section class="turn-part" aria-label=${t("turnNumber", turn.number)} data-turn=${turn.number}>
      <div class="turn">
        ${markOf(turn, this.#marks)}
        <h2>
          <button class="b small quiet" aria-expanded=${isChosen} @click=${() => this.#choose(turn.number)}>
            ${t("turnNumber", turn.number)}
          </button>
        </h2>
        <time class="t3 num">${clock(turn.began_at)}</time
        ><span class="t2 cut" dir="auto"
          >${turn.title ? `\u201c${visibleLine(turn.title, 200)}\u201d` : nameOf(turn)}</span
        >
        ${turn.working ? html`<span class="xs t3 right wide-only">${t("worksNow")}</span>` : nothing}
        ${
          isChosen
            ? html`<span class="right row"
                ><button
                  class="b small quiet"
                  aria-disabled=${this.#isOff}
                  @click=${() => {
                    this.asked = turn.number;
                  }}
                >
                  ${t("undoTurn")}
                </button>
                <button class="b small" aria-disabled=${!this.#isReady} @click=${() => this.#keepTurn()}>
                  ${t("keepTurn")} <kbd>⇧A</kbd>
                </button></span
              >`
            : nothing
        }
      </div>
      ${
        this.asked === turn.number
          ? html`<div class="ask-undo" role="group" aria-label=${t("undoTurnNow")}>
              <p>${t("undoTurnText", counted(turn.files.length, "oneFile", "countFiles"), turn.number)}</p>
              <button
                class="b small primary"
                aria-disabled=${!this.#isReady}
                @click=${() => this.#undoTurn(turn.number)}
              >
                ${t("undoTurnNow")}
              </button>
              <button
                class="b small"
                @click=${() => {
                  this.asked = 0;
                }}
              >
                ${t("cancel")}
              </button>
            </div>`
          : nothing
      }
      ${
        isChosen
          ? html`${captions(turn.number === this.listing?.turns[0]?.number ? this.listing.since : 0)}${turn.files.slice(0, this.limit).map((file) => this.#file(turn, file))}
            ${
              turn.files.length > this.limit
                ? html`<button
                    class="b small show-more"
                    @click=${() => {
                      this.limit += SHOWN;
                      void this.#loadFiles();
                    }}
                  >
                    ${t("more")}
                  </button>`
                : nothing
            }`
          : nothing
      }
    </section>`;
  }

  #file(turn: WrittenTurn, file: WrittenFile) {
    return html`<isthmus-written-file
      .file=${file}
      .diff=${this.#diffs.get(diffKey(turn.number, file.path))}
      .turn=${turn.number}
      .path=${this.#path(file.path)}
      .marks=${this.#marks}
      .current=${this.current}
      ?isOff=${this.#isOff}
      .version=${this.drawn}
      data-path=${file.path}
    ></isthmus-written-file>`;
  }

  #actions() {
    const toUndo = this.#marks.count("undo");
    const toKeep = this.#marks.count("keep");
    return html`<div class="actions">
      <button class="b primary" aria-disabled=${!this.#isReady} @click=${() => this.#send(true)}>
        ${toUndo ? t("undoRest", toUndo) : t("keepAllWritten")} <kbd>⌘↵</kbd>
      </button>
      ${toUndo + toKeep ? html`<button class="b" aria-disabled=${!this.#isReady} @click=${() => this.#send(false)}>${t("onlyMarked", toUndo + toKeep)}</button>` : nothing}
      <span class="sm t2 grow wide-only">${t("undoCanBack")}</span>
      <span class="vh" role="status">${toUndo + toKeep ? t("markedCount", toUndo, toKeep) : nothing}</span>
    </div>`;
  }

  get #folder(): string {
    const [folder = ""] = this.#entry?.folders ?? [];
    return visibleLine(folder.split("/").filter(Boolean).pop() ?? "", 80);
  }

  #path(path: string): string {
    const folder = this.#entry?.folders.find((one) => path.startsWith(`${one.replace(/\/$/, "")}/`)) ?? "";
    return shownPath(path, folder);
  }

  #choose(turn: number): void {
    const isOther = turn !== this.chosen;
    this.chosen = turn;
    this.isOpen = true;
    if (isOther) {
      this.limit = SHOWN;
      this.current = "";
      void this.#load();
    }
    void this.updateComplete.then(() =>
      this.querySelector(`[data-turn="${turn}"]`)?.scrollIntoView({ block: "start" }),
    );
  }

  #step(by: 1 | -1): void {
    const turns = this.listing?.turns ?? [];
    const next = turns[turns.findIndex((turn) => turn.number === this.chosen) + by];
    if (next) this.#choose(next.number);
  }

  /** Go to the next or the previous hunk of the chosen turn. */
  #goHunk(by: 1 | -1): void {
    const hunks = [...this.querySelectorAll<HTMLElement>("[data-hunk]")];
    const focused = document.activeElement?.closest("[data-hunk]");
    // What was decided about may be gone: then it goes on from where the focus is.
    const known = hunks.findIndex((hunk) => hunk.dataset.hunk === this.current);
    const at = known < 0 ? hunks.findIndex((hunk) => hunk === focused) : known;
    const next = hunks[at < 0 ? 0 : Math.max(0, Math.min(hunks.length - 1, at + by))];
    if (!next) return;
    this.isOpen = true;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  #wished = (event: CustomEvent<HunkWish>): void => {
    const wish = event.detail;
    if (this.#isOff) return;
    if ("takeBack" in wish) {
      this.#takeBack(wish.takeBack);
      return;
    }
    const path = (event.target as HTMLElement).dataset.path ?? "";
    this.#marks.set({ turn: this.chosen, path }, wish.ids, wish.mark);
    this.drawn += 1;
  };

  /** Mark the hunk that has been reached; without a mark, take it away or the undo back. */
  #markCurrent(mark: "keep" | "undo" | undefined, event: KeyboardEvent): void {
    if (this.#isOff || event.repeat) return;
    for (const file of this.#turn?.files ?? []) {
      const found = this.#diffs
        .get(diffKey(this.chosen, file.path))
        ?.hunks.find((hunk) => hunkKey(this.chosen, file.path, hunk.id) === this.current);
      if (!found) continue;
      if (found.state === "written") {
        if (mark !== "undo" || !file.why) this.#marks.set({ turn: this.chosen, path: file.path }, [found.id], mark);
        this.drawn += 1;
      } else if (!mark && found.undo !== null && isMeant(event)) {
        this.#takeBack(found.undo);
      }
      return;
    }
  }

  #keepTurn(): void {
    if (!this.#isReady) return;
    void this.#decide((state) => keep(this.companion, { turn: this.chosen, state }));
  }

  #undoTurn(turn: number): void {
    if (!this.#isReady) return;
    this.asked = 0;
    void this.#decide((state) => undo(this.companion, { turn, state }));
  }

  #takeBack(number: number): void {
    void this.#decide(() => takeBack(this.companion, number));
  }

  /** Carry out what is marked; with `rest` keep everything else. */
  #send(rest: boolean): void {
    if (!this.#isReady) return;
    void this.#decide(async (first) => {
      const { companion } = this;
      const seen = this.listing as Listing;
      const problems: string[] = [];
      let state = first;
      const each = async (
        mark: "undo" | "keep",
        act: (selection: Selection) => Promise<{ state: string; problems?: string[] }>,
      ): Promise<void> => {
        for (const selection of this.#marks.selections(mark)) {
          const done = await act({ ...selection, state });
          state = done.state;
          problems.push(...(done.problems ?? []));
          this.#marks.set(selection, selection.hunks, undefined);
        }
      };
      await each("undo", (selection) => undo(companion, selection));
      if (!rest) await each("keep", (selection) => keep(companion, selection));
      if (!rest || problems.length) return { problems };
      // An undo compares the files, too: what was written since was not seen, and is not kept.
      const now = await loadListing(companion);
      if (writesOf(now) !== writesOf(seen)) return { problems: [t("otherWrites")] };
      await keep(companion, { state: now.state });
      this.#marks.clear();
      return { problems };
    });
  }

  /** Send one decision at a time; what is shown afterwards is what the companion says. */
  async #decide(act: (state: string) => Promise<{ problems?: string[] }>): Promise<void> {
    if (this.#isOff || !this.listing) return;
    this.busy = "sending";
    this.problems = [];
    try {
      const { problems = [] } = await act(this.listing.state);
      this.problems = problems.map((problem) => visibleLine(problem, 500));
    } catch (error) {
      const hasChanged = error instanceof ApiError && error.status === 409;
      this.problems = [hasChanged ? t("otherWrites") : problemOf(error)];
    } finally {
      this.busy = "";
    }
    await this.#load();
  }

  #press = (event: KeyboardEvent): void => {
    if (isEnter(event) && (event.metaKey || event.ctrlKey) && !document.querySelector("dialog[open]")) {
      if (isMeant(event) && this.listing?.turns.length) this.#send(true);
      event.preventDefault();
      return;
    }
    if (!isForPage(event)) return;
    if (event.key === "j" || event.key === "k") this.#goHunk(event.key === "j" ? 1 : -1);
    else if (event.key === "J" || event.key === "K") this.#step(event.key === "J" ? 1 : -1);
    else if (event.key === "a") this.#markCurrent("keep", event);
    else if (event.key === "x") this.#markCurrent("undo", event);
    else if (event.key === "u") this.#markCurrent(undefined, event);
    else if (event.key === "A") {
      if (isMeant(event) && this.#turn) this.#keepTurn();
    } else if (event.key === "Escape") this.#leave();
    else return;
    event.preventDefault();
  };

  #leave(): void {
    if (this.asked) this.asked = 0;
    else if (this.isOpen && !this.querySelector<HTMLElement>(".turns")?.checkVisibility()) this.isOpen = false;
    else go(PAGE);
  }
}
