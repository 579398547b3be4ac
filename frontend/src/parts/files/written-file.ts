import { type TemplateResult, html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Piece, type Span, exactPieces } from "../../diff/code-spans.ts";
import { icon } from "../../frame/icons.ts";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { type Mark, type Marks, isBack } from "../../written/marks.ts";
import type { WrittenDiff, WrittenFile, WrittenHunk } from "../../written/written.ts";
import { type Part, type SideLine, partsOf } from "../../written/written-rows.ts";
import { PageElement } from "../base.ts";
import { shownCounts } from "./counts.ts";

/** Number of lines of a side of a hunk that are drawn at first, and with each wish for more. */
const DRAWN = 400;
/** Up to this number of lines the buttons of a hunk stand beside each other. */
const TIGHT = 3;

/** What the user does with hunks of a file: a mark for some, or the undo that is to be taken back. */
export type HunkWish = { ids: string[]; mark: Mark | undefined } | { takeBack: number };

/** A file that was written in one turn, both sides beside each other; `wished` says what the user does with its hunks. */
@customElement("isthmus-written-file")
export class WrittenFileElement extends PageElement {
  /** The file as it is listed, and with its texts once they are there. */
  @property({ attribute: false }) file!: WrittenFile;
  @property({ attribute: false }) diff: WrittenDiff | undefined;
  @property({ type: Number }) turn = 0;
  @property() path = "";
  @property({ attribute: false }) marks!: Marks;
  /** The hunk that keys are for. */
  @property() current = "";
  @property({ type: Boolean }) isOff = false;
  @property({ type: Number }) version = 0;
  @state() private unfolded: ReadonlySet<number> = new Set();
  @state() private colours: Record<"old" | "new", Span[][]> = { old: [], new: [] };
  @state() private drawn: ReadonlyMap<string, number> = new Map();

  override willUpdate(changed: Map<string, unknown>): void {
    const before = changed.get("diff") as WrittenDiff | undefined;
    const { diff } = this;
    if (!changed.has("diff") || !diff || (before?.old === diff.old && before.new === diff.new)) return;
    this.colours = { old: [], new: [] };
    void import("../../diff/editor/code-colours.ts")
      .then(async ({ codeColours }) => {
        const [old, now] = await Promise.all([diff.old, diff.new].map((text) => codeColours(text ?? "", diff.path)));
        if (this.diff?.old === diff.old && this.diff.new === diff.new)
          this.colours = { old: old ?? [], new: now ?? [] };
      })
      .catch(() => undefined);
  }

  #mark(id: string): Mark | undefined {
    return this.marks.of({ turn: this.turn, path: this.file.path }, id);
  }

  override render() {
    const { file, diff } = this;
    const note = this.#note();
    const name = this.path.lastIndexOf("/") + 1;
    const open = diff?.hunks.filter((hunk) => hunk.state === "written").map((hunk) => hunk.id) ?? [];
    return html`<section class="written-file" aria-label=${visibleLine(this.path)}>
      <div class="fl">
        ${icon("file")}
        <h3 class="cut">
          <code dir="auto"><span class="t3">${this.path.slice(0, name)}</span>${this.path.slice(name)}</code>
        </h3>
        ${shownCounts(file)} ${note ? html`<span class="xs t3 note grow">${note}</span>` : nothing}
        ${
          open.length > 1
            ? html`<span class="right row">
                <button
                  class="b small quiet"
                  aria-disabled=${this.isOff || file.why !== ""}
                  @click=${() => this.#wish({ ids: open, mark: "undo" })}
                >
                  ${t("undoFile")}
                </button>
                <button
                  class="b small quiet"
                  aria-disabled=${this.isOff}
                  @click=${() => this.#wish({ ids: open, mark: "keep" })}
                >
                  ${t("keepFile")}
                </button></span
              >`
            : nothing
        }
      </div>
      ${diff ? partsOf(diff, (id) => this.#mark(id), this.unfolded).map((part) => this.#part(part, diff)) : html`<p class="empty" role="status">${t("connecting")}</p>`}
    </section>`;
  }

  /** What is to be known of the file before it is decided about. */
  #note(): string {
    const { file, diff } = this;
    const said: string[] = [];
    if (file.renamed_from) said.push(t("renamedFrom", visibleLine(file.renamed_from)));
    else if (file.kind === "created") said.push(t("newFileUndo"));
    else if (file.kind === "deleted") said.push(t("deletedUndo"));
    for (const hunk of diff?.hunks ?? [])
      if (hunk.later.length) said.push(t("laterTurns", hunk.number, hunk.later.join(", ")));
    if (file.why) said.push(t("cannotUndo", visibleLine(file.why)));
    return said.join(" \u00b7 ");
  }

  #part(part: Part, diff: WrittenDiff) {
    if (part.kind === "fold") {
      return html`<button
        class="fold"
        @click=${() => {
          this.unfolded = new Set(this.unfolded).add(part.from);
        }}
      >
        ${t("alikeLines", part.count)}
      </button>`;
    }
    if (part.kind === "alike") {
      return html`<div class="both alike">
        ${part.before.map((line) => this.#row("o", "same", line))}${part.after.map((line) => this.#row("w", "", line))}
      </div>`;
    }
    return this.#hunk(part, diff);
  }

  #hunk({ hunk, isBack: back, before, after, lacksNewline }: Extract<Part, { kind: "hunk" }>, diff: WrittenDiff) {
    const all = Math.max(before.length, after.length, 1);
    const limit = this.drawn.get(hunk.id) ?? DRAWN;
    const count = Math.min(all, limit);
    const place = t("hunkOf", hunk.number, diff.hunks.length);
    const mark = this.#mark(hunk.id);
    const key = hunkKey(this.turn, this.file.path, hunk.id);
    const state =
      hunk.state === "undone"
        ? t("wentBack")
        : mark === "undo"
          ? t("goesBack")
          : mark === "keep"
            ? t("staysWritten")
            : "";
    const side = (which: "o" | "w", lines: SideLine[], kind: "d" | "a" | "ghost" | ""): TemplateResult[] =>
      Array.from({ length: count }, (_, at) => {
        const line = lines[at];
        const end = kind === "ghost" && at === 0 ? state : "";
        if (line) return this.#row(which, kind, line, end);
        return html`<div class="l ${which} v ${end ? "ghost" : ""}">
          ${end ? html`<span class="end">${end}</span>` : nothing}
        </div>`;
      });
    const notes = [...aboutOf(hunk, diff), ...(lacksNewline ? [t("noNewline")] : [])];
    // By keys a hunk is reached by the focus.
    // eslint-disable-next-line lit-a11y/click-events-have-key-events
    return html`<div
      class="both hunk ${back ? "back" : ""} ${key === this.current ? "on" : ""}"
      role="group"
      tabindex="-1"
      data-hunk=${key}
      aria-label="${place}${state ? `, ${state}` : ""}"
      @focusin=${() => this.#go(key)}
      @click=${() => this.#go(key)}
    >
      ${side("o", before, back ? "" : "d")}
      <div class="neck ${back ? "parted" : "joined"} ${count <= TIGHT ? "tight" : ""}">
        ${this.#buttons(hunk, mark, place)}
      </div>
      ${side("w", after, back ? "ghost" : "a")}
      ${back && hunk.new_lines.length > hunk.old_lines.length ? html`<p class="said-of">${t("linesWentBack", hunk.new_lines.length - hunk.old_lines.length)}</p>` : nothing}
      ${notes.map((note) => html`<p class="said-of">${note}</p>`)}
      ${
        all > count
          ? html`<button
              class="fold"
              @click=${() => {
                this.drawn = new Map(this.drawn).set(hunk.id, limit + DRAWN);
              }}
            >
              ${t("moreLines", all - count)}
            </button>`
          : nothing
      }
    </div>`;
  }

  #buttons(hunk: WrittenHunk, mark: Mark | undefined, place: string) {
    const back = isBack(hunk, mark);
    const isUndone = hunk.state === "undone";
    const press = (wanted: Mark) => this.#wish({ ids: [hunk.id], mark: mark === wanted ? undefined : wanted });
    return html`<span class="hunk-place">${place}</span>
      ${
        isUndone
          ? nothing
          : html`<button
              class="hb ${mark === "keep" ? "on" : ""}"
              aria-pressed=${mark === "keep"}
              aria-disabled=${this.isOff}
              @click=${() => press("keep")}
              aria-label="${t("keepHunkAfter")}, ${place}"
              title=${t("keepHunkAfter")}
            >
              ${icon("check")}
            </button>`
      }
      <button
        class="hb ${back ? "on" : ""}"
        aria-pressed=${back}
        aria-disabled=${this.isOff || (!isUndone && this.file.why !== "")}
        @click=${() => (hunk.undo === null ? press("undo") : this.#wish({ takeBack: hunk.undo }))}
        aria-label="${t(isUndone ? "takeBackHunk" : "undoHunk")}, ${place}"
        title=${t(isUndone ? "takeBackHunk" : "undoHunk")}
      >
        ${icon("undo")}
      </button>`;
  }

  #row(
    side: "o" | "w",
    kind: "d" | "a" | "ghost" | "same" | "",
    { number, text, marks, source, at }: SideLine,
    end = "",
  ): TemplateResult {
    const sign = kind === "d" ? "\u2212" : kind === "a" ? "+" : "";
    const said = kind === "d" ? t("removedLine") : kind === "a" ? t("addedLine") : "";
    // What is alike is said once, as it is now.
    return html`<div class="l ${side} ${kind}" aria-hidden=${kind === "same" ? "true" : nothing}>
      <span class="n">${number}</span><span class="s" aria-hidden="true">${sign}</span
      ><code class="c"
        >${said ? html`<span class="vh">${said} </span>` : nothing}${exactPieces(
          text,
          this.colours[source][at] ?? [],
          sign ? marks : [],
        ).map(piece)}</code
      >${end ? html`<span class="end">${end}</span>` : nothing}
    </div>`;
  }

  #go(key: string): void {
    if (key !== this.current) this.dispatchEvent(new CustomEvent("reached", { detail: key, bubbles: true }));
  }

  /** Say what the user wants. Buttons that are off can be pressed all the same: a disabled one would lose the focus. */
  #wish(wish: HunkWish): void {
    if (this.isOff || ("mark" in wish && wish.mark === "undo" && this.file.why)) return;
    this.dispatchEvent(new CustomEvent("wished", { detail: wish, bubbles: true }));
  }
}

export function hunkKey(turn: number, path: string, id: string): string {
  return `${turn}\n${id}\n${path}`;
}

/** Return what of a hunk has no lines. */
function aboutOf({ about }: WrittenHunk, { old_mode, new_mode }: WrittenDiff): string[] {
  const said: string[] = [];
  if (about.includes("mode") && old_mode !== null && new_mode !== null && old_mode !== new_mode)
    said.push(t("modeChanged", new_mode.toString(8), old_mode.toString(8)));
  if (about.includes("content")) said.push(t("notTextChanged"));
  if ((about.includes("mark") || about.includes("encoding")) && old_mode !== null && new_mode !== null)
    said.push(t("markChanged"));
  return said;
}

function piece({ text, name, isMarked }: Piece) {
  const coloured = name ? html`<span class=${name}>${text}</span>` : text;
  return isMarked && text ? html`<mark>${coloured}</mark>` : coloured;
}
