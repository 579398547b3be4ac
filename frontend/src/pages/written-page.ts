import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../frame/icons.ts";
import { isEnter, isForPage, isMeant } from "../frame/keys.ts";
import { PageElement, go } from "../parts/base.ts";
import { type HunkWish, hunkKey } from "../parts/files/written-file.ts";
import { PAGE } from "../place.ts";
import { shownPath } from "../questions/question.ts";
import type { ReviewStore } from "../server/reviews.ts";
import { visibleLine } from "../text/safe.ts";
import { clock, t } from "../words.ts";
import { captions, counted, markOf, nameOf } from "../written/turns.ts";
import { turnsList } from "../written/turns-list.ts";
import type { Listing, WrittenFile, WrittenTurn } from "../written/written.ts";
import { WrittenStore } from "../written/written-store.ts";
import "../styles/written.css";

/** What agents wrote without a review at one companion: by turn and hunk, to be kept or undone. */
@customElement("isthmus-written")
export class WrittenPage extends PageElement {
  @property() companion = "";
  @property({ attribute: false }) reviews!: ReviewStore;
  @property({ type: Number }) version = 0;
  @state() private current = "";
  @state() private isOpen = false;
  /** The turn whose undo is to be confirmed. */
  @state() private asked = 0;
  /** Counts what changed of the store or of marks, so that it is drawn. */
  @state() private drawn = 0;
  #store = this.#storeOf("");
  #count = -1;
  #wasReached = true;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
    this.#store.close();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("companion")) {
      this.#store.close();
      this.#store = this.#storeOf(this.companion);
      this.#count = -1;
    }
    if (!this.#store.turns.some((turn) => turn.number === this.asked)) this.asked = 0;
    const { isReached } = this.reviews;
    const count = this.#entry?.written?.count ?? 0;
    if (isReached && (count !== this.#count || !this.#wasReached)) {
      this.#count = count;
      void this.#store.load();
    }
    this.#wasReached = isReached;
  }

  #storeOf(companion: string): WrittenStore {
    return new WrittenStore(companion, () => {
      this.drawn += 1;
    });
  }

  get #entry() {
    return this.reviews.companions.find((one) => one.id === this.companion);
  }

  get #isOff(): boolean {
    return !this.reviews.isReached || this.#store.isBusy;
  }

  /** Whether a decision about more than marks can be sent now. */
  get #isReady(): boolean {
    return !this.#isOff && this.#store.isRead;
  }

  override render() {
    const { listing, turns, problems, hasEnded } = this.#store;
    return html`<main class="contents">
      <section class="pane turns ${this.isOpen ? "behind" : ""}" aria-label=${t("turnsList")}>
        ${turnsList({
          listing,
          folder: this.#folder,
          chosen: this.#store.chosen,
          marks: this.#store.marks,
          isOff: this.#isOff,
          pathOf: (path) => this.#path(path),
          choose: (turn) => this.#choose(turn),
          takeBack: (undo) => this.#takeBack(undo),
        })}
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
          ${problems.map((problem) => html`<p class="problem" role="alert">${problem}</p>`)}
          ${
            hasEnded
              ? html`<p class="empty" role="status">${t("companionGone")}</p>`
              : !listing
                ? html`<p class="empty" role="status">${t("connecting")}</p>`
                : turns.length
                  ? turns.map((turn) => this.#section(turn))
                  : this.#empty(listing)
          }
        </div>
        ${turns.length && !hasEnded ? this.#actions() : nothing}
      </section>
    </main>`;
  }

  #head(listing: Listing | undefined) {
    const turns = listing?.turns ?? [];
    const at = turns.findIndex((turn) => turn.number === this.#store.chosen);
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
    const { turn, chosen } = this.#store;
    const keys = (turn?.files ?? []).flatMap(({ path }) =>
      (this.#store.diffOf(chosen, path)?.hunks ?? []).map((hunk) => hunkKey(chosen, path, hunk.id)),
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
    const isChosen = turn.number === this.#store.chosen;
    return html`<section class="turn-part" aria-label=${t("turnNumber", turn.number)} data-turn=${turn.number}>
      <div class="turn">
        ${markOf(turn, this.#store.marks)}
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
          ? html`${captions(turn.number === this.#store.turns[0]?.number ? (this.#store.listing?.since ?? 0) : 0)}${turn.files.slice(0, this.#store.limit).map((file) => this.#file(turn, file))}
            ${
              turn.files.length > this.#store.limit
                ? html`<button class="b small show-more" @click=${() => this.#store.showMore()}>${t("more")}</button>`
                : nothing
            }`
          : nothing
      }
    </section>`;
  }

  #file(turn: WrittenTurn, file: WrittenFile) {
    return html`<isthmus-written-file
      .file=${file}
      .diff=${this.#store.diffOf(turn.number, file.path)}
      .turn=${turn.number}
      .path=${this.#path(file.path)}
      .marks=${this.#store.marks}
      .current=${this.current}
      ?isOff=${this.#isOff}
      .version=${this.drawn}
      data-path=${file.path}
    ></isthmus-written-file>`;
  }

  #actions() {
    const toUndo = this.#store.marks.count("undo");
    const toKeep = this.#store.marks.count("keep");
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
    if (this.#store.choose(turn)) this.current = "";
    this.isOpen = true;
    void this.updateComplete.then(() =>
      this.querySelector(`[data-turn="${turn}"]`)?.scrollIntoView({ block: "start" }),
    );
  }

  #step(by: 1 | -1): void {
    const { turns } = this.#store;
    const next = turns[turns.findIndex((turn) => turn.number === this.#store.chosen) + by];
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
    this.#store.marks.set({ turn: this.#store.chosen, path }, wish.ids, wish.mark);
    this.drawn += 1;
  };

  /** Mark the hunk that has been reached; without a mark, take it away or the undo back. */
  #markCurrent(mark: "keep" | "undo" | undefined, event: KeyboardEvent): void {
    if (this.#isOff || event.repeat) return;
    for (const file of this.#store.turn?.files ?? []) {
      const found = this.#store
        .diffOf(this.#store.chosen, file.path)
        ?.hunks.find((hunk) => hunkKey(this.#store.chosen, file.path, hunk.id) === this.current);
      if (!found) continue;
      if (found.state === "written") {
        if (mark !== "undo" || !file.why)
          this.#store.marks.set({ turn: this.#store.chosen, path: file.path }, [found.id], mark);
        this.drawn += 1;
      } else if (!mark && found.undo !== null && isMeant(event)) {
        this.#takeBack(found.undo);
      }
      return;
    }
  }

  #keepTurn(): void {
    if (this.#isReady) void this.#store.keepTurn();
  }

  #undoTurn(turn: number): void {
    if (!this.#isReady) return;
    this.asked = 0;
    void this.#store.undoTurn(turn);
  }

  #takeBack(number: number): void {
    if (!this.#isOff) void this.#store.takeBack(number);
  }

  #send(rest: boolean): void {
    if (this.#isReady) void this.#store.send(rest);
  }

  #press = (event: KeyboardEvent): void => {
    if (isEnter(event) && (event.metaKey || event.ctrlKey) && !document.querySelector("dialog[open]")) {
      if (isMeant(event) && this.#store.turns.length) this.#send(true);
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
      if (isMeant(event) && this.#store.turn) this.#keepTurn();
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
