import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { prompt, runCommand } from "../client.ts";
import { visible, visibleLine } from "../safe.ts";
import { ApiError, type Session } from "../session.ts";
import type { TaskStore } from "../store.ts";
import { t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import { type PromptBox, type Written, isCommand } from "../parts/prompt-box.ts";

/** The beginning of a task. */
@customElement("isthmus-new")
export class NewPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ attribute: false }) session!: Session;
  @state() private isSending = false;
  @state() private problem = "";
  @state() private folder = "";
  @query("isthmus-prompt") private box!: PromptBox;

  override firstUpdated(): void {
    void this.updateComplete.then(() => this.box.write());
  }

  override render() {
    const known = [...new Set([...this.session.workspaces, ...this.store.tasks.map((task) => task.workspace)])].filter(Boolean).slice(0, 30);
    this.folder ||= known[0] ?? "";
    return html`<main class="pane surface span"><div class="head"><h1>${t("newTask")}</h1></div>
      <div class="center-page"><div class="col">
        <label class="t2 sm row">${t("folder")}
          <select class="field grow" @change=${(event: Event) => { this.folder = (event.target as HTMLSelectElement).value; }}>
            ${known.map((folder) => html`<option value=${folder} ?selected=${folder === this.folder}>${visible(folder)}</option>`)}
          </select></label>
        ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
        <isthmus-prompt .hint=${t("promptHint")} ?isBusy=${this.isSending} draftKey="draft:new" .workspace=${this.folder}
          @written=${(event: CustomEvent<Written>) => void this.#write(event.detail)}></isthmus-prompt>
      </div></div></main>`;
  }

  async #write(written: Written): Promise<void> {
    this.isSending = true;
    this.problem = "";
    try {
      if (isCommand(written)) {
        const taskId = await runCommand(written.text, { workspace: this.folder, ...(written.mode ? { mode: written.mode } : {}) });
        this.box.clear();
        this.store.refresh();
        go(`/ui/task/${taskId}`);
        return;
      }
      const row = await prompt(written.text, { workspace: this.folder, ...(written.mode ? { mode: written.mode } : {}), images: written.images });
      this.box.clear();
      this.store.put(row);
      go(`/ui/task/${row.id}`);
    } catch (error) {
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    } finally {
      this.isSending = false;
    }
  }
}
