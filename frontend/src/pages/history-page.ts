import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon, stateMark } from "../icons.ts";
import { visible, visibleLine } from "../safe.ts";
import type { TaskStore } from "../store.ts";
import { age, t } from "../words.ts";
import { PageElement, isForPage } from "../parts/base.ts";

/** All tasks of the user, changed last first, with a search over what is loaded. */
@customElement("isthmus-history")
export class HistoryPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ type: Number }) now = Date.now();
  @property({ type: Number }) version = 0;
  @state() private sought = "";

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
  }

  override render() {
    const words = this.sought.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.store.tasks.filter((task) => words.every((word) => `${task.title} ${task.workspace}`.toLowerCase().includes(word)));
    return html`<main class="pane surface span">
      <div class="head"><h1>${t("history")}</h1>
        <input class="field right" type="search" placeholder=${t("search")} aria-label=${t("search")} @input=${(event: Event) => { this.sought = (event.target as HTMLInputElement).value; }} /></div>
      <ul class="scroll rows">
        ${found.map((task) => html`<li class="row beside"><a class="line grow" href="/ui/task/${task.id}">${stateMark(task.state)}
          <span class="grow cut" dir="auto">${visibleLine(task.title, 200) || task.id}</span>
          <span class="t3 xs cut wide-only" dir="auto">${visible(task.workspace)}</span>
          <time class="t3 xs num">${age(task.changedAt, this.now)}</time></a>
          <a class="b small quiet icon" href="/ui/diff/${task.id}" aria-label="${t("sessionDiff")}: ${visibleLine(task.title, 60)}" title=${t("sessionDiff")}>${icon("sides")}</a></li>`)}
        ${!found.length && this.store.isLoaded ? html`<li class="empty"><p>${t("emptyHistory")}</p><p class="t3">${t("emptyHistoryNext")}</p></li>` : nothing}
        ${this.store.hasMore ? html`<li class="center"><button class="b small" @click=${() => void this.store.more()}>${t("more")}</button></li>` : nothing}
      </ul>
    </main>`;
  }

  #press = (event: KeyboardEvent): void => {
    if (!isForPage(event) || event.key !== "/") return;
    event.preventDefault();
    this.querySelector<HTMLInputElement>("input")?.focus();
  };
}
