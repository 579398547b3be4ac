import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { type Reply, answerAll, tell } from "../../client.ts";
import type { Answered } from "../../server/task-stream.ts";
import { faultOf, progressOf } from "../../forms/checks.ts";
import { type Answer, type Answers, type Field, type Form, formOf } from "../../forms/form.ts";
import { coversOf, hintOf, messageOf } from "../../forms/card-facts.ts";
import { titleOf } from "../../forms/form-facts.ts";
import { answerOf, cancelOf, declineOf, repliesOf } from "../../forms/replies.ts";
import { say } from "../../forms/words.ts";
import "../../styles/forms.css";
import { FormDrafts } from "../../forms/form-drafts.ts";
import { icon } from "../../frame/icons.ts";
import { hasLetters, isEnter, isMeant, sendKey } from "../../frame/keys.ts";
import { isLongText } from "../../diff/change-size.ts";
import type { TaskRow, ToolCall } from "../../server/protocol.ts";
import { factsOf } from "../../questions/question.ts";
import { fullWordsOf } from "../../questions/option-words.ts";
import { ask } from "../../questions/words.ts";
import { exact, exactLine, visibleLine } from "../../text/safe.ts";
import { problemOf } from "../../problems/problem.ts";
import { ApiError } from "../../server/session.ts";
import { COMMA, clock, t } from "../../words.ts";
import { AnswerCard } from "./answer-card.ts";
import type { MenuRow } from "../phone-menu.ts";
import { phoneWord } from "../../phone/words.ts";
import { FAULT, type FieldState, fieldRows } from "./form-fields.ts";

const DRAFTS = new FormDrafts();

/** What a server or an agent asks, as fields of the page. The questions of one call are one form, and each has its answer. */
@customElement("isthmus-form")
export class FormCard extends AnswerCard {
  /** The calls that are asked together; those that were answered meanwhile stay. */
  @property({ attribute: false }) calls: readonly ToolCall[] = [];
  /** Ids of the calls that still wait. */
  @property({ attribute: false }) open: ReadonlySet<string> = new Set();
  /** Who answered the calls that do not wait any more, as far as that is known. */
  @property({ attribute: false }) answered: ReadonlyMap<string, Answered> = new Map();
  @property({ attribute: false }) task: TaskRow | undefined;
  @property() taskId = "";
  /** Name of the agent and of its model. */
  @property() agent = "";
  @property() model = "";
  @state() private answers: Answers = new Map();
  /** Fields that were left, whose faults are said. */
  @state() private left: ReadonlySet<string> = new Set();
  /** Calls that were answered here. */
  @state() private sent: ReadonlySet<string> = new Set();
  /** What the server said of calls whose answers it refused. */
  @state() private refused: ReadonlyMap<string, string> = new Map();
  @state() private focused = "";

  protected override get subject(): string {
    return `${this.taskId}/${this.calls[0]?.tool_call_id ?? ""}`;
  }

  /** Whether something was chosen or typed that was not sent. */
  get hasText(): boolean {
    return !this.wasSent && this.answers.size > 0;
  }

  get #form(): Form | undefined {
    return formOf(this.calls);
  }

  /** Ids of the calls that can be answered here. */
  get #open(): ReadonlySet<string> {
    return new Set([...this.open].filter((id) => !this.sent.has(id)));
  }

  protected override get isOver(): boolean {
    return this.#open.size === 0;
  }

  protected override get carriesWords(): boolean {
    return this.#form?.is === "questions";
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#pressed);
    this.addEventListener("focusin", this.#entered);
    this.addEventListener("focusout", this.#left);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#pressed);
    this.removeEventListener("focusin", this.#entered);
    this.removeEventListener("focusout", this.#left);
    this.#tell("keyshere", "");
    this.#tell("titled", "");
  }

  protected override begin(): void {
    this.left = this.sent = new Set();
    this.refused = new Map();
    this.focused = "";
    this.answers = DRAFTS.of(this.taskId, this.#form);
    this.read();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    super.willUpdate(changed);
    const before = changed.get("calls") as readonly ToolCall[] | undefined;
    // What came meanwhile is to be read before an answer counts.
    if (before?.length && before[0] === this.calls[0] && this.calls.length > before.length) {
      this.unread();
      this.read();
    }
  }

  override updated(changed: Map<string, unknown>): void {
    super.updated(changed);
    const form = this.#form;
    const keys = form?.fields.length ? say("keysOfForm", sendKey()) : say("keysOfPage", sendKey());
    this.#tell("keyshere", form && !this.isOver && hasLetters() ? keys : "");
    this.#tell("titled", form ? titleOf(form) : "");
  }

  /** Tell the frame of the page: the status line names the keys for here, and the title what is asked. */
  #tell(name: "keyshere" | "titled", detail: string): void {
    dispatchEvent(new CustomEvent(name, { detail }));
  }

  // --- fields --------------------------------------------------------------------------------------------------------

  #set(field: Field, given: Answer): void {
    this.answers = new Map(this.answers).set(field.key, given);
    DRAFTS.keep(this.taskId, this.#form, field, given);
  }

  #entered = (event: FocusEvent): void => {
    const key = keyOf(event.target);
    if (key) this.focused = key;
  };

  #left = (event: FocusEvent): void => {
    const key = keyOf(event.target);
    if (key && key !== keyOf(event.relatedTarget)) this.left = new Set([...this.left, key]);
  };

  #stateOf(field: Field): FieldState {
    const isOpen = this.#open.has(field.callId);
    const given = answerOf(field, this.answers);
    const fault = this.left.has(field.key) && isOpen ? faultOf(field, given) : "";
    return {
      answer: given,
      fault,
      note: this.#noteOf(field),
      isOff: !isOpen || this.sending !== "",
      hasKeys: this.#current === field || this.#current?.kind !== "choice",
      set: (next) => this.#set(field, next),
    };
  }

  /** Return what happened to the answer of a field. */
  #noteOf(field: Field): string {
    const said = this.refused.get(field.callId);
    if (this.sent.has(field.callId)) return say("sentHere");
    if (this.open.has(field.callId)) return said ? say("notTaken", said) : "";
    const found = this.answered.get(field.callId);
    const who = visibleLine(found?.by ?? "", 80) || t("someone");
    const options = this.calls.find((call) => call.tool_call_id === field.callId)?.confirmation_request?.options ?? [];
    const option = options.find((one) => one.id === found?.optionId);
    return option ? t("answeredWith", who, fullWordsOf(option)) : t("answered", who);
  }

  /** The question whose options the digits choose: the one with the focus, otherwise the first one with options. */
  get #current(): Field | undefined {
    const fields = this.#form?.fields.filter((field) => field.choices.length && this.#open.has(field.callId)) ?? [];
    return fields.find((field) => field.key === this.focused) ?? fields[0];
  }

  // --- drawing -------------------------------------------------------------------------------------------------------

  override render() {
    const form = this.#form;
    if (!form) return nothing;
    const [first] = form.fields;
    const title = titleOf(form);
    const message = messageOf(form);
    return html`<article class="question as-form" aria-label=${title}>
      <p class="form-goes cut">${this.#goesTo(form)}</p>
      <div class="card-body" tabindex="-1">
        <div class="form">
          <div class="form-top">
            <div class="card-title">
              <h2 tabindex="-1" dir="auto">${title}</h2>
              ${this.beside}
            </div>
            ${message ? (isLongText(message) ? this.shownText(message, title) : html`<p class="form-said" dir="auto">${message}</p>`) : nothing}
            ${first ? html`<p class="form-sub">${this.#subtitle(form, first)}</p>` : nothing}
          </div>
          ${form.problem ? html`<p class="problem" role="status">${say("notAccepted", exactLine(form.problem, 500))}</p>` : nothing}
          ${fieldRows(form, (field) => this.#stateOf(field))} ${this.#facts(form)}
        </div>
      </div>
      <div class="card-foot">
        ${this.problems()}
        ${this.isOver ? this.#ended() : this.isTelling ? this.reason(t("reasonAll")) : this.#actions(form)}
      </div>
    </article>`;
  }

  #subtitle(form: Form, first: Field) {
    const hint = hintOf(first);
    if (form.is === "fields") return [exactLine(first.title), hint].filter(Boolean).join(" \u00b7 ");
    const count =
      form.fields.length > 1
        ? html`<span class="wide-only">${say("questionsOf", form.fields.length)} · </span>`
        : nothing;
    return html`${count}${hint}`;
  }

  #goesTo(form: Form) {
    if (form.is === "questions")
      return html`${say("goesToWord")} ${this.model ? say("agentAndModel", this.agent, this.model) : this.agent}`;
    if (form.is === "page" || form.is === "pages") return html`${this.#place(form)}${COMMA}${say("staysThere")}`;
    return html`${say("goesToWord")} ${this.#place(form)}${form.server ? say("notToModel") : nothing}`;
  }

  #place(form: Form) {
    if (form.is === "pages") return html`<b class="sb">${exactLine(form.urls.join(" "), 300)}</b>`;
    if (form.host) return html`<b class="sb" dir="auto">${exactLine(form.host)}</b>`;
    return form.server ? html`<b class="sb" dir="auto">${exactLine(form.server)}</b>${say("aProgram")}` : this.agent;
  }

  #facts(form: Form) {
    const at = this.task ? clock(this.task.changedAt / 1000) : "";
    const isPage = form.is === "page" || form.is === "pages";
    const to =
      form.is === "questions"
        ? this.model
          ? say("agentAndModel", this.agent, this.model)
          : this.agent
        : html`${this.#place(form)}${isPage ? html`${COMMA}${say("staysThere")}` : form.server ? say("notToModel") : nothing}`;
    const wants = factsOf(form.calls[0] as ToolCall, "").wants;
    return html`<dl class="facts">
      ${
        wants && form.is === "questions"
          ? html`<dt>${t("wants")}</dt>
              <dd dir="auto">${wants}</dd>`
          : nothing
      }
      ${
        isPage
          ? form.urls.map(
              (url) =>
                html`<dt>${say("address")}</dt>
                  <dd><code dir="ltr">${exact(url)}</code></dd>`,
            )
          : nothing
      }
      <dt>${say(isPage ? "opens" : "goesToWord")}</dt>
      <dd>${to}</dd>
      <dt>${t("covers")}</dt>
      <dd>${coversOf(form)}</dd>
      ${
        form.askedIn
          ? html`<dt>${say("askedBy")}</dt>
              <dd>
                ${say("theCall")} <code dir="ltr">${exactLine(form.askedIn)}</code> ${say("ofAgent", this.agent, at)}
              </dd>`
          : nothing
      }
    </dl>`;
  }

  #actions(form: Form) {
    const progress = progressOf(form, this.answers, this.#open);
    const hasFaults = progress.toMend.some((field) => this.left.has(field.key));
    const words =
      form.is === "page"
        ? say(form.opensBrowser ? "openPage" : "goThere", exactLine(form.host))
        : form.is === "pages"
          ? ask("iAmDone")
          : progress.isEmpty
            ? say("sendEmpty")
            : t("send");
    return html`<div class="actions form-actions">
      <span class="form-count" id="unseen"
        >${hasFaults ? this.#mend(progress.toMend) : html`${form.fields.length ? say("answeredOf", progress.answered, progress.all) : nothing}${progress.next ? html`<button class="form-next" @click=${() => this.#go(progress.next)}><span class="cut">${exactLine(progress.next.title, 60)}</span>${icon("next")}</button>` : nothing}`}</span
      >
      ${this.button(words, sendKey(), "primary", this.sending === "send", true, () => void this.#send(), "", progress.toMend.length > 0)}
      ${this.button(ask("decline"), "n", "", this.sending === "decline", true, () => void this.#decline())}
      <span class="form-rest desk-only">${this.#cancelButton(form)}</span>
    </div>`;
  }

  /** Return the button for what is more than to go on without an answer; on a phone it is in the menu. */
  #cancelButton(form: Form) {
    if (form.is === "questions") return this.button(ask("rejectAsk"), "", "quiet", false, true, this.tell);
    const cancel = this.#cancel(form);
    return cancel ? this.button(say("cancelCall"), "", "quiet", this.sending === "cancel", true, cancel) : nothing;
  }

  /** Return what ends the call, if it can be ended. */
  #cancel({ calls: [call] }: Form): (() => void) | undefined {
    const option = call && cancelOf(call);
    return option
      ? () => void this.#post("cancel", [{ callId: call.tool_call_id, optionId: option.id, content: undefined }])
      : undefined;
  }

  override get further(): MenuRow[] {
    const form = this.#form;
    if (!form || this.isOver || this.isTelling) return [];
    const isOff = !this.isReady;
    const cancel = this.#cancel(form);
    if (form.is === "questions")
      return [{ icon: "close", words: ask("rejectAsk"), note: phoneWord("rejectNote"), isOff, act: this.tell }];
    return cancel
      ? [{ icon: "close", words: say("cancelCall"), note: phoneWord("cancelNote"), isOff, act: cancel }]
      : [];
  }

  #mend(fields: readonly Field[]) {
    const [first] = fields;
    if (!first) return nothing;
    return html`${FAULT} ${say(fields.length === 1 ? "oneToMend" : "countToMend", fields.length)}
      <a
        class="target"
        href="#"
        @click=${(event: Event) => {
          event.preventDefault();
          this.#go(first);
        }}
        >${exactLine(first.title, 60)}</a
      >`;
  }

  #ended() {
    const isOwn = this.open.size > 0 || this.wasSent;
    return html`<div class="ended" role="status">
      <p>${isOwn ? say("sentHere") : say("answeredElsewhereForm")}</p>
      ${!isOwn && this.hasText ? html`<p>${t("notSent")}</p>` : nothing}
    </div>`;
  }

  #go(field: Field | undefined): void {
    const place =
      field && [...this.querySelectorAll<HTMLElement>("[data-field]")].find((one) => one.dataset.field === field.key);
    place?.scrollIntoView({ block: "nearest" });
    place?.querySelector<HTMLElement>("input:checked, input, textarea, select")?.focus();
  }

  // --- answers -------------------------------------------------------------------------------------------------------

  async #send(): Promise<void> {
    const form = this.#form;
    if (!form || this.isOver || this.sending) return;
    const { toMend } = progressOf(form, this.answers, this.#open);
    if (toMend.length) {
      this.left = new Set([...this.left, ...toMend.map((field) => field.key)]);
      await this.updateComplete;
      this.#go(toMend[0]);
      return;
    }
    if (!this.isReady || this.unseen) return;
    const [url] = form.urls;
    if (form.is === "page" && !form.opensBrowser && url && /^https?:/.test(url))
      window.open(url, "_blank", "noopener,noreferrer");
    await this.#post("send", repliesOf(form, this.answers, this.#open));
  }

  async #decline(): Promise<void> {
    if (!this.isReady) return;
    const calls = this.calls.filter((call) => this.#open.has(call.tool_call_id));
    const replies = calls.map((call) => ({
      callId: call.tool_call_id,
      optionId: declineOf(call)?.id ?? "cancel",
      content: undefined,
    }));
    await this.#post("decline", replies);
  }

  protected override async told(words: string): Promise<void> {
    if (!this.isReady) return;
    const [call] = this.calls;
    this.sending = "tell";
    this.#announce("answering");
    try {
      this.#finish(await tell(this.taskId, `I rejected the call of ${call?.tool_name ?? ""}. ${words}`));
    } catch (error) {
      this.#announce("failed");
      this.say(error);
    }
  }

  /** Send the answers: together, and each for its call if one of them is refused, so that the others count. */
  async #post(name: string, replies: readonly Reply[]): Promise<void> {
    if (!this.isReady) return;
    const subject = this.subject;
    const form = this.#form;
    this.sending = name;
    this.problem = "";
    this.refused = new Map();
    this.#announce("answering");
    const sent = new Set<string>();
    const refused = new Map<string, string>();
    let row: TaskRow | undefined;
    let failure: unknown;
    const attempts = replies.length > 1 ? [replies, ...replies.map((reply) => [reply])] : [replies];
    for (const attempt of attempts) {
      try {
        row = await answerAll(this.taskId, attempt);
        for (const { callId } of attempt) sent.add(callId);
        if (attempt === replies) break;
      } catch (error) {
        failure = error;
        // Without the server nothing more is tried: nobody knows what has arrived.
        if (!(error instanceof ApiError) || error.status === 0) break;
        if (attempt.length === 1 && attempt[0]) refused.set(attempt[0].callId, problemOf(error));
      }
    }
    for (const callId of sent) DRAFTS.sent(this.taskId, form, callId);
    if (subject !== this.subject) return;
    this.sent = new Set([...this.sent, ...sent]);
    if (row && sent.size === replies.length) {
      this.#finish(row);
      return;
    }
    this.sending = "";
    this.refused = refused;
    this.problem = problemOf(failure);
    if (row) this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
    this.#announce("failed");
  }

  #finish(row: TaskRow): void {
    this.wasSent = true;
    this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
  }

  #announce(what: "answering" | "failed"): void {
    this.dispatchEvent(new CustomEvent(what, { detail: this.subject }));
  }

  // --- keys ----------------------------------------------------------------------------------------------------------

  #pressed = (event: KeyboardEvent): void => {
    if (!this.takesKeys || this.isOver || event.defaultPrevented || !this.checkVisibility()) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && keyOf(event.target)) {
      event.preventDefault();
      this.focusTitle();
    } else if (isEnter(event) && (event.metaKey || event.ctrlKey) && !this.isTelling) {
      event.preventDefault();
      if (isMeant(event)) void this.#send();
    }
  };

  protected override isAnswer(key: string): boolean {
    return /^[n1-9]$/.test(key);
  }

  protected override pressed(key: string): boolean {
    if (key === "n") void this.#decline();
    else return /^[1-9]$/.test(key) && this.#choose(Number(key) - 1);
    return true;
  }

  /** Choose an option of the question with the focus, and give it the focus. */
  #choose(at: number): boolean {
    const field = this.#current;
    const isOwn = field?.takesWords && at === field.choices.length;
    const choice = field?.choices[at];
    if (!field || this.sending || (!choice && !isOwn)) return false;
    const given = answerOf(field, this.answers);
    if (field.kind === "choices" && choice) {
      const has = given.chosen.includes(choice.value);
      const chosen = field.choices
        .map((one) => one.value)
        .filter((value) => (value === choice.value ? !has : given.chosen.includes(value)));
      this.#set(field, { ...given, chosen });
    } else if (choice) this.#set(field, { ...given, chosen: [choice.value], isOwn: false });
    else this.#set(field, { ...given, chosen: field.kind === "choices" ? given.chosen : [], isOwn: true });
    void this.updateComplete.then(() => {
      const place = [...this.querySelectorAll<HTMLElement>("[data-field]")].find(
        (one) => one.dataset.field === field.key,
      );
      place?.querySelectorAll<HTMLElement>("input.rd, input.cb")[at]?.focus();
      if (isOwn) place?.querySelector<HTMLElement>(".own")?.focus();
    });
    return true;
  }
}

function keyOf(target: EventTarget | null): string {
  return target instanceof Element ? (target.closest<HTMLElement>("[data-field]")?.dataset.field ?? "") : "";
}
