import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import { answer } from "../client.ts";
import { icon } from "../icons.ts";
import type { ConfirmationOption, ToolCall } from "../protocol.ts";
import { factsOf } from "../question.ts";
import { visible, visibleLine } from "../safe.ts";
import { ApiError } from "../session.ts";
import { t } from "../words.ts";
import { PageElement, READ_MS, isForPage } from "./base.ts";
import { type DiffElement, countsOf } from "./diff-view.ts";
import "./diff-view.ts";
import "./reject-reason.ts";

const COMMAND_LINES = 14;
const COMMAND_CHARACTERS = 8_000;

/** A question with what it would do, and its answers. Nothing is shown as answered before the server says so. */
@customElement("isthmus-question")
export class QuestionCard extends PageElement {
  @property({ attribute: false }) call!: ToolCall;
  @property() taskId = "";
  @property() workspace = "";
  @property({ type: Boolean }) isOff = false;
  @property({ type: Boolean }) takesKeys = false;
  @state() private sending = "";
  @state() private problem = "";
  @state() private isEditing = false;
  @state() private isWhole = false;
  @state() private isEdited = false;
  @state() private isTelling = false;
  @query("isthmus-diff") private diff: DiffElement | null | undefined;
  #shownAt = 0;
  #takesFocus = false;

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("keydown", this.#press);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("keydown", this.#press);
  }

  override willUpdate(changed: Map<string, unknown>): void {
    const before = changed.get("call") as ToolCall | undefined;
    if (changed.has("taskId") || (changed.has("call") && before?.tool_call_id !== this.call.tool_call_id)) {
      this.#shownAt = performance.now();
      // After an answer that was given here the focus goes to the next question; nothing of it is pressed.
      this.#takesFocus = before !== undefined && (this.sending !== "" || this.isTelling);
      this.sending = this.problem = "";
      this.isEditing = this.isWhole = this.isEdited = this.isTelling = false;
    }
  }

  override updated(): void {
    if (!this.#takesFocus) return;
    this.#takesFocus = false;
    this.querySelector<HTMLElement>("h2")?.focus();
  }

  override render() {
    const request = this.call.confirmation_request;
    if (!request) return nothing;
    const facts = factsOf(this.call, this.workspace), diff = request.file_edit_details;
    const command = request.execute_details?.command;
    const title = `${facts.verb} ${facts.object}`.trim();
    return html`
      <article class="question" aria-label=${title}>
        <div class="card-top">
          <h2 tabindex="-1">${facts.verb} ${facts.verb ? html`<code dir="auto">${facts.object}</code>` : facts.object}</h2>
          <dl class="facts">
            ${facts.wants ? html`<dt>${t("wants")}</dt><dd dir="auto">${facts.wants}</dd>` : nothing}
            ${facts.touches ? html`<dt>${t("touches")}</dt><dd><code dir="auto">${facts.touches}</code></dd>` : nothing}
            ${facts.covers ? html`<dt>${t("covers")}</dt><dd>${facts.covers}</dd>` : nothing}
          </dl>
        </div>
        <div class="card-body" tabindex="-1">
          ${diff ? html`
            <div class="dhead">${icon("file")}<code class="cut" dir="auto">${facts.object}</code> ${countsOf(diff)}
              ${this.isEdited ? html`<span class="pill acc">${t("edited")}</span>` : nothing}
              <span class="right row">
                ${this.isEdited ? html`<button class="b small quiet" @click=${() => this.diff?.undo()}>${t("undoEdits")}</button>` : nothing}
                ${diff.old_content === undefined ? nothing : html`<button class="b small quiet wide-only" @click=${() => this.diff?.toggle()}>${icon("sides")}${t("sideBySide")} <kbd>v</kbd></button>`}
              </span>
            </div>
            <isthmus-diff .oldText=${diff.old_content} .newText=${diff.new_content} .path=${facts.object} ?editable=${this.isEditing}
              @edited=${() => { this.isEdited = this.diff?.isEdited ?? false; }}></isthmus-diff>`
          : command !== undefined ? this.#command(command)
          : this.#parameters(request.generic_details?.description)}
        </div>
        ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
        ${this.isOff ? html`<p class="problem">${t("offline")}</p>` : nothing}
        ${this.isTelling ? html`<isthmus-reason .taskId=${this.taskId} .callId=${this.call.tool_call_id} .tool=${this.call.tool_name}
            ?isOff=${this.isOff} @closed=${() => { this.isTelling = false; this.querySelector<HTMLElement>("h2")?.focus(); }}></isthmus-reason>`
          : html`<div class="actions">${this.#actions(request.options, diff !== undefined)}</div>`}
      </article>`;
  }

  #command(command: string) {
    return html`<pre class="command" tabindex="0" dir="ltr">${this.#cut(command)}</pre>${this.#rest(command)}`;
  }

  /** Return a text whole, or its beginning until the user has asked for the rest. */
  #cut(text: string): string {
    if (this.isWhole) return visible(text);
    return visible(text.slice(0, COMMAND_CHARACTERS)).split("\n").slice(0, COMMAND_LINES).join("\n");
  }

  #rest(text: string) {
    if (!this.#isCut) return nothing;
    return html`<button class="b small" @click=${() => { this.isWhole = true; }}>${t("showWhole")} (${lineCount(text).toLocaleString()})</button>`;
  }

  /** Whether a part of what would be run or called is not shown, so that it cannot be allowed. */
  get #isCut(): boolean {
    if (this.isWhole) return false;
    const request = this.call.confirmation_request, command = request?.execute_details?.command;
    if (request?.file_edit_details) return false;
    const text = command ?? parametersOf(this.call);
    return text.length > COMMAND_CHARACTERS || (command !== undefined && lineCount(text) > COMMAND_LINES);
  }

  #parameters(description: string | undefined) {
    const parameters = parametersOf(this.call), isCut = this.#isCut;
    return html`${description ? html`<p class="prose" dir="auto">${visible(description)}</p>` : nothing}
      ${parameters === "{}" ? nothing : html`<pre class="command" tabindex="0">${this.call.tool_name} ${isCut ? visible(parameters.slice(0, COMMAND_CHARACTERS)) : visible(parameters)}</pre>${this.#rest(parameters)}`}`;
  }

  #actions(options: ConfirmationOption[], isEdit: boolean) {
    const main = options.filter((option) => isOnce(option) || isRefusal(option));
    const wider = options.filter((option) => !main.includes(option));
    const button = (option: ConfirmationOption, more: string) => {
      const key = isOnce(option) ? "y" : isRefusal(option) ? "n" : String(options.indexOf(option) + 1);
      const isOff = this.isOff || this.sending !== "" || (this.#isCut && !isRefusal(option));
      return html`<button class="b ${more}" ?disabled=${isOff} title=${visibleLine(option.description ?? "")} @click=${() => void this.#send(option.id)}>
        ${this.sending === option.id ? t("sending") : visibleLine(option.name)} <kbd>${key}</kbd></button>`;
    };
    return html`
      ${main.filter(isOnce).map((option) => button(option, "primary"))}
      ${isEdit ? html`<button class="b" ?disabled=${this.sending !== "" || this.isEditing} @click=${this.#edit}>${t("editFirst")} <kbd>e</kbd></button>` : nothing}
      ${main.filter(isRefusal).map((option) => button(option, ""))}
      <button class="b" ?disabled=${this.isOff || this.sending !== ""} @click=${() => { this.isTelling = true; }}>${t("rejectTelling")} <kbd>t</kbd></button>
      <span class="right row wider">${wider.map((option) => button(option, "quiet"))}</span>`;
  }

  #edit = (): void => {
    this.isEditing = true;
  };

  async #send(optionId: string): Promise<void> {
    if (this.sending || this.isOff) return;
    this.sending = optionId;
    this.problem = "";
    const edited = this.isEdited && !/^cancel/.test(optionId) ? this.diff?.text : undefined;
    try {
      const row = await answer(this.taskId, this.call.tool_call_id, optionId, edited);
      this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
    } catch (error) {
      this.sending = "";
      this.problem = error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, 500) : t("noReach");
    }
  }

  #press = (event: KeyboardEvent): void => {
    if (!this.takesKeys || this.isTelling || !isForPage(event) || performance.now() - this.#shownAt < READ_MS) return;
    const options = this.call.confirmation_request?.options ?? [];
    const chosen = event.key === "y" ? options.find(isOnce) : event.key === "n" ? options.find(isRefusal)
      : /^[1-9]$/.test(event.key) ? options[Number(event.key) - 1] : undefined;
    if (event.key === "e" && this.call.confirmation_request?.file_edit_details) this.#edit();
    else if (event.key === "v") this.diff?.toggle();
    else if (event.key === "t" && !this.isOff && !this.sending) this.isTelling = true;
    else if (chosen && !(this.#isCut && !isRefusal(chosen))) void this.#send(chosen.id);
    else return;
    event.preventDefault();
  };
}

const PARAMETERS = new WeakMap<ToolCall, string>();

function parametersOf(call: ToolCall): string {
  let found = PARAMETERS.get(call);
  if (found === undefined) PARAMETERS.set(call, (found = JSON.stringify(call.input_parameters ?? {}, null, 2)));
  return found;
}

function lineCount(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

function isOnce(option: ConfirmationOption): boolean {
  return option.id === "proceed_once" || option.id === "allow_once";
}

function isRefusal(option: ConfirmationOption): boolean {
  return /^(cancel|reject)/.test(option.id);
}
