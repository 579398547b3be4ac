import { html, nothing } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { Cell, CellChange, NotebookChanges } from "../../text/notebook-cells.ts";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";
import { type DiffElement } from "./diff-view.ts";
import "./diff-view.ts";

/** The changes of a notebook by cell, to read; outputs are shown as JSON. `shown` says that all is drawn. */
@customElement("isthmus-notebook")
export class NotebookView extends PageElement {
  @property({ attribute: false }) changes!: NotebookChanges;
  /** Whether all of the change is so large that each part is to be seen. */
  @property({ type: Boolean }) isLarge = false;

  get isShown(): boolean {
    return [...this.querySelectorAll<DiffElement>("isthmus-diff")].every((diff) => diff.isShown);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.addEventListener("shown", this.#drawn, true);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener("shown", this.#drawn, true);
  }

  override updated(): void {
    if (!this.querySelector("isthmus-diff")) this.dispatchEvent(new CustomEvent("shown"));
  }

  #drawn = (event: Event): void => {
    if (event.target !== this && this.isShown) this.dispatchEvent(new CustomEvent("shown"));
  };

  override render() {
    const { cells, same, rest } = this.changes;
    return html`<p class="hint">${same === 1 ? t("cellSame") : t("cellsSame", same)}</p>
      ${
        rest
          ? html`<section class="cell">
              <h3>${t("cellRest")}</h3>
              <isthmus-diff
                isAwaited
                ?isLarge=${this.isLarge}
                .oldText=${rest.old}
                .newText=${rest.new}
                .path=${"notebook.json"}
              ></isthmus-diff>
            </section>`
          : nothing
      }
      ${cells.map((change) => this.#cell(change))}`;
  }

  #cell(change: CellChange) {
    const { what, number, old } = change;
    const cell = change.new ?? old;
    const kind = visibleLine(cell?.kind ?? "", 30);
    const word = { changed: "cellChanged", added: "cellAdded", removed: "cellRemoved", moved: "cellMoved" } as const;
    const before = old?.source;
    const after = change.new?.source ?? "";
    const counts: [number, number] = [old?.outputs.length ?? 0, change.new?.outputs.length ?? 0];
    const hasOtherRest = old !== undefined && change.new !== undefined && restOf(old) !== restOf(change.new);
    const hasOtherKind = old !== undefined && change.new !== undefined && old.kind !== change.new.kind;
    return html`<section class="cell">
      <h3>
        ${t("cellNumber", kind, number)} <span class="pill ${what === "removed" ? "" : "acc"}">${t(word[what])}</span>
      </h3>
      ${hasOtherKind ? html`<p>${t("cellKind", visibleLine(old.kind, 30), kind)}</p>` : nothing}
      ${
        change.hasOtherOutputs
          ? html`<p>${t("cellOutputs", ...counts)}</p>
              <isthmus-diff
                isAwaited
                ?isLarge=${this.isLarge}
                .oldText=${outputsOf(old)}
                .newText=${outputsOf(change.new) ?? ""}
                .path=${"outputs.json"}
              ></isthmus-diff>`
          : nothing
      }
      ${before === after ? nothing : html`<isthmus-diff isAwaited ?isLarge=${this.isLarge} .oldText=${before} .newText=${after} .path=${`cell${cell?.kind === "markdown" ? ".md" : this.changes.ending}`}></isthmus-diff>`}
      ${hasOtherRest ? html`<isthmus-diff isAwaited ?isLarge=${this.isLarge} .oldText=${restOf(old)} .newText=${change.new ? restOf(change.new) : ""} .path=${"cell.json"}></isthmus-diff>` : nothing}
      ${what === "added" && cell && cell.rest !== "{}" ? html`<isthmus-diff isAwaited ?isLarge=${this.isLarge} .newText=${cell.rest} .path=${"cell.json"}></isthmus-diff>` : nothing}
    </section>`;
  }
}

function outputsOf(cell: Cell | undefined): string | undefined {
  return cell?.outputs.length ? JSON.stringify(cell.outputs, null, 1) : undefined;
}

/** Return all of a cell but its kind, source and outputs. */
function restOf(cell: Cell): string {
  return cell.id ? `${JSON.stringify({ id: cell.id })}\n${cell.rest}` : cell.rest;
}
