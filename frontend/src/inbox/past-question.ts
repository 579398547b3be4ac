// What the inbox shows at the address of a question that does not wait: how it ended, or that it is not known.

import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { getTask } from "../client.ts";
import { formOf } from "../forms/form.ts";
import { titleOf } from "../forms/form-facts.ts";
import { MARK } from "../frame/icons.ts";
import { PageElement } from "../parts/base.ts";
import { outcomeText } from "../parts/cards/outcome.ts";
import { PAGE } from "../place.ts";
import type { TaskRow } from "../server/protocol.ts";
import { factsOf } from "../questions/question.ts";
import { ask } from "../questions/words.ts";
import type { ReviewStore } from "../server/reviews.ts";
import { visibleLine } from "../text/safe.ts";
import { problemOf } from "../problems/problem.ts";
import { answererName, isNotThere } from "../server/session.ts";
import { type SessionList, sessionPath } from "../server/sessions.ts";
import { type PastQuestion, pastQuestion } from "../server/task-stream.ts";
import { endWords } from "./end-words.ts";
import { t } from "../words.ts";

/** The task and the call in the key of a question; undefined for that of a review. */
export function callIn(key: string): { taskId: string; callId: string } | undefined {
  const at = key.indexOf("/");
  return at > 0 ? { taskId: key.slice(0, at), callId: key.slice(at + 1) } : undefined;
}

@customElement("isthmus-past-question")
export class PastQuestionPage extends PageElement {
  /** Key of the question, as in its address. */
  @property() key = "";
  @property({ attribute: false }) reviews!: ReviewStore;
  @property({ attribute: false }) sessions!: SessionList;
  @state() private task: TaskRow | undefined;
  @state() private past: PastQuestion | undefined;
  @state() private problem = "";
  @state() private isUnknown = false;

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("key")) void this.#look();
  }

  #look = async (): Promise<void> => {
    const { key } = this;
    this.task = this.past = undefined;
    this.problem = "";
    const wanted = callIn(key);
    this.isUnknown = !wanted;
    if (!wanted) return;
    try {
      const task = await getTask(wanted.taskId);
      if (key !== this.key) return;
      if (task.pending.some((call) => call.tool_call_id === wanted.callId && call.confirmation_request)) {
        this.dispatchEvent(new CustomEvent("waits", { detail: task }));
        return;
      }
      const past = await pastQuestion(wanted.taskId, wanted.callId);
      if (key !== this.key) return;
      this.task = task;
      this.past = past;
      this.isUnknown = !past.call && !past.answer;
    } catch (error) {
      if (key !== this.key) return;
      if (isNotThere(error)) this.isUnknown = true;
      else this.problem = problemOf(error);
    }
  };

  override render() {
    const outcome = this.reviews.outcome(this.key);
    if (outcome) return this.#page(ask("pastTitle"), visibleLine(outcome.about, 160), outcomeText(outcome));
    if (this.problem)
      return this.#page(
        ask("pastNotLoaded"),
        "",
        this.problem,
        html`<button class="b" @click=${this.#look}>${t("tryAgain")}</button>`,
      );
    if (this.isUnknown) return this.#page(ask("pastUnknown"), "", ask("pastUnknownWhy"));
    const { past, task } = this;
    if (!past || !task) return html`<p class="empty" role="status">${t("connecting")}</p>`;
    const { call } = past;
    const form = call && formOf([call]);
    const facts = call && factsOf(call, task.workspace);
    const about = form ? titleOf(form) : facts ? `${facts.verb} ${facts.object}`.trim() : "";
    const session = visibleLine(this.sessions.titleOf(task), 80);
    return this.#page(
      ask("pastTitle"),
      about,
      endWords(past, answererName()),
      html`<a class="b" href=${sessionPath(task.contextId, task.id)}
        >${session ? ask("toSessionOf", session) : ask("toSession")}</a
      >`,
    );
  }

  #page(title: string, about: string, end: string, way: unknown = nothing) {
    return html`<div class="nowhere" role="status">
      ${MARK}
      <h2 tabindex="-1" class="md">${title}</h2>
      ${about ? html`<p dir="auto"><code>${about}</code></p>` : nothing}
      <p class="t2" dir="auto">${end}</p>
      ${way}
      <a class="b quiet" href=${PAGE}>${ask("toInbox")}</a>
    </div>`;
  }
}
