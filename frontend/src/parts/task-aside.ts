import { html, nothing } from "lit";
import { customElement, property } from "lit/decorators.js";
import type { SessionStatus } from "../client.ts";
import { stateMark } from "../icons.ts";
import type { TaskState } from "../protocol.ts";
import { shownCost } from "../money.ts";
import { shownPath } from "../question.ts";
import { visibleLine } from "../safe.ts";
import type { TaskStore } from "../store.ts";
import type { ChangedFile, TaskFold } from "../task-fold.ts";
import { numeral } from "../language.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";
import { PAGE } from "../place.ts";

/** Return the files that turns have changed, each once, with the lines of all its changes. */
export function filesOf(folds: readonly Pick<TaskFold, "changedFiles">[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const { path, added, removed } of folds.flatMap((fold) => fold.changedFiles)) {
    const known = files.get(path) ?? { path, added: 0, removed: 0 };
    files.set(path, { path, added: known.added + added, removed: known.removed + removed });
  }
  return [...files.values()];
}

/** Facts of a session beside its conversation: plan, subagents, changed files, model and size of the conversation. */
@customElement("isthmus-aside")
export class TaskAside extends PageElement {
  /** The newest turn. */
  @property({ attribute: false }) fold!: TaskFold;
  /** The turns that are shown. */
  @property({ attribute: false }) folds: readonly TaskFold[] = [];
  @property({ attribute: false }) store!: TaskStore;
  @property() taskId = "";
  /** Number of the newest turn; 0 for a task alone. */
  @property({ type: Number }) turn = 0;
  /** What can be done with the session. */
  @property({ attribute: false }) more: unknown = nothing;
  @property() state: TaskState = "submitted";
  @property() version = "";
  @property({ attribute: false }) status: SessionStatus | undefined;
  override render() {
    const { fold } = this;
    const row = fold.row ?? this.store.rows.get(this.taskId);
    const workspace = row?.workspace ?? "";
    const children = this.folds.flatMap(({ name }) => this.store.childrenOf(name));
    const changedFiles = filesOf(this.folds);
    const { usage } = fold;
    const { tokens, window } = this.status ?? { window: 0 };
    return html` <div class="head">
        <span class="sm sb">${stateWord(this.state)}</span>
        ${this.turn ? html`<span class="right xs t3 num">${t("turnNumber", this.turn)}</span>` : nothing}
      </div>
      ${
        fold.todos.length
          ? html`<section>
              <h2>${t("plan")}</h2>
              <ul>
                ${fold.todos.map((todo) => html`<li class=${todo.status === "in_progress" ? "md" : ""}>${stateMark(todoState(todo.status))}<span dir="auto">${visibleLine(todo.description)}</span></li>`)}
              </ul>
            </section>`
          : nothing
      }
      ${
        children.length
          ? html`<section>
              <h2>${t("subagents")}</h2>
              <ul>
                ${children.map((child) => html`<li>${stateMark(child.state)}<a class="grow cut" href="${PAGE}task/${child.id}" dir="auto">${visibleLine(child.title, 120) || child.id}</a><span class="t3">${stateWord(child.state)}</span></li>`)}
              </ul>
            </section>`
          : nothing
      }
      ${
        changedFiles.length
          ? html`<section>
              <h2>${t("changedFiles")}</h2>
              <ul>
                ${changedFiles.slice(0, 200).map(
                  (file) =>
                    html`<li>
                      <span class="grow cut" dir="auto">${shownPath(file.path, workspace)}</span
                      ><span class="num"
                        ><span class="add">+${file.added}</span> <span class="del">−${file.removed}</span></span
                      >
                    </li>`,
                )}
              </ul>
            </section>`
          : nothing
      }
      ${row && !row.parent ? html`<section><a class="target" href="${PAGE}diff/${this.taskId}">${t("sessionDiff")}</a></section>` : nothing}
      ${
        row?.parent
          ? html`<section>
              <h2>${t("begunBy")}</h2>
              <a href="${PAGE}task/${row.parent}" dir="auto"
                >${visibleLine(this.store.rows.get(row.parent)?.title ?? "", 120) || row.parent}</a
              >
            </section>`
          : nothing
      }
      <section>
        <dl class="facts">
          ${
            row?.model
              ? html`<dt>${t("model")}</dt>
                  <dd dir="auto">${visibleLine(row.model, 120)}</dd>`
              : nothing
          }
          ${
            tokens !== undefined
              ? html`<dt>${t("context")}</dt>
                  <dd class="num">${window ? t("tokensOf", tokens, window) : t("tokens", tokens)}</dd>`
              : nothing
          }
          ${
            this.status?.cost || this.status?.unpriced.length
              ? html`<dt>${t("cost")}</dt>
                  <dd class="num" dir="auto">${visibleLine(costText(this.status.cost, this.status.unpriced), 200)}</dd>`
              : nothing
          }
          ${
            usage.cost > 0
              ? html`<dt>${t("taskCost")}</dt>
                  <dd class="num">
                    ${usage.unpriced ? t("costAndMore", shownCost(usage.cost, "USD")) : shownCost(usage.cost, "USD")}
                  </dd>`
              : nothing
          }
          ${
            usage.input + usage.output > 0
              ? html`<dt>${t("tokensUsed")}</dt>
                  <dd class="num">
                    ${t(usage.cached ? "tokensInCached" : "tokensIn", usage.input, `${numeral(usage.cached)} (${Math.round((100 * usage.cached) / usage.input)}%)`)}<br />${t(usage.thought ? "tokensOutThought" : "tokensOut", usage.output, usage.thought)}
                  </dd>`
              : nothing
          }
          ${
            workspace
              ? html`<dt>${t("folder")}</dt>
                  <dd dir="auto">${visibleLine(workspace, 300)}</dd>`
              : nothing
          }
        </dl>
      </section>
      ${this.more}`;
  }
}

function costText(cost: string, unpriced: string[]): string {
  if (!unpriced.length) return cost;
  return t(cost ? "costPartly" : "costUnknown", unpriced.slice(0, 3).join(", "), cost);
}

export function stateWord(state: TaskState): string {
  if (state === "completed") return t("done");
  if (state === "failed" || state === "rejected") return t("failed");
  if (state === "canceled") return t("canceled");
  return state === "input-required" || state === "auth-required" ? t("waits") : t("working");
}

function todoState(status: string): TaskState | "todo" {
  if (status === "completed") return "completed";
  if (status === "in_progress") return "working";
  return status === "cancelled" ? "canceled" : "todo";
}
