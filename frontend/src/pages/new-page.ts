import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { getTask } from "../client.ts";
import { visible } from "../text/safe.ts";
import { problemOf } from "../problems/problem.ts";
import { sendWritten } from "../conversation/sending.ts";
import type { Session } from "../server/session.ts";
import { sessionPath } from "../server/sessions.ts";
import { StatusReader } from "../server/session-status.ts";
import type { TaskStore } from "../server/store.ts";
import { t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import type { PromptBox, Written } from "../parts/prompt/prompt-box.ts";
import "../parts/prompt/prompt-box.ts";

/** The beginning of a session. */
@customElement("isthmus-new")
export class NewPage extends PageElement {
  @property({ attribute: false }) store!: TaskStore;
  @property({ attribute: false }) session!: Session;
  @state() private isSending = false;
  @state() private problem = "";
  @state() private folder = "";
  #status = new StatusReader(() => this.requestUpdate());
  @query("isthmus-prompt") private box!: PromptBox;

  override firstUpdated(): void {
    void this.updateComplete.then(() => this.box.write());
  }

  override render() {
    const known = [...new Set([...this.session.workspaces, ...this.store.tasks.map((task) => task.workspace)])]
      .filter(Boolean)
      .slice(0, 30);
    this.folder ||= known[0] ?? "";
    if (this.folder) this.#status.look({ workspace: this.folder }, "");
    return html`<main class="pane surface span">
      <div class="head"><h1>${t("newSession")}</h1></div>
      <div class="center-page">
        <div class="col">
          <label class="t2 sm row"
            >${t("folder")}
            <select
              class="field grow"
              @change=${(event: Event) => {
                this.folder = (event.target as HTMLSelectElement).value;
              }}
            >
              ${known.map((folder) => html`<option value=${folder} ?selected=${folder === this.folder}>${visible(folder)}</option>`)}
            </select></label
          >
          ${this.folder ? html`<isthmus-trust .workspace=${this.folder} ?takesKeys=${true}></isthmus-trust>` : nothing}
          ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
          <isthmus-prompt
            .hint=${t("promptHint")}
            ?isBusy=${this.isSending}
            draftKey="draft:new"
            .workspace=${this.folder}
            .status=${this.#status.status}
            @written=${(event: CustomEvent<Written>) => void this.#write(event.detail)}
          ></isthmus-prompt>
        </div>
      </div>
    </main>`;
  }

  async #write(written: Written): Promise<void> {
    this.isSending = true;
    this.problem = "";
    try {
      const taskId = await sendWritten(written, { workspace: this.folder }, this.store);
      this.box.clear();
      const contextId = this.store.rows.get(taskId)?.contextId ?? (await getTask(taskId)).contextId;
      go(sessionPath(contextId));
    } catch (error) {
      this.problem = problemOf(error);
    } finally {
      this.isSending = false;
    }
  }
}
