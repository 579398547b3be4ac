import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { answer, tell } from "../../client.ts";
import type { Answered } from "../../server/task-stream.ts";
import { isOnce, isRefusal } from "../../questions/options.ts";
import type { ConfirmationOption, TaskRow, ToolCall } from "../../server/protocol.ts";
import { isLongText } from "../../diff/change-size.ts";
import { phoneWord } from "../../phone/words.ts";
import { type Facts, factsOf, isForm, jsonProblem } from "../../questions/question.ts";
import { fullWordsOf, wordsOf } from "../../questions/option-words.ts";
import { riskPills } from "../../questions/risks.ts";
import { ask } from "../../questions/words.ts";
import { exact, exactLine, visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";
import { type NamedFact, shortLimit } from "./card-facts.ts";
import { EditCard } from "./edit-card.ts";
import type { MenuRow } from "../phone-menu.ts";
import { countsOf } from "../files/counts.ts";

/** A question of a task with what it would do, and its answers. Nothing is shown as answered before the server says so. */
@customElement("isthmus-question")
export class QuestionCard extends EditCard {
  @property({ attribute: false }) call!: ToolCall;
  @property() taskId = "";
  @property() workspace = "";
  /** Name of the agent that asks. */
  @property() agent = "";
  /** Whether the question was answered elsewhere; then it stays, and says by whom. */
  @property({ type: Boolean }) hasEnded = false;
  @property({ attribute: false }) answered: Answered | undefined;
  /** Words of a rejection that were typed and not sent, since somebody answered before. */
  @state() private unsent = "";

  protected override get subject(): string {
    return `${this.taskId}/${this.call.tool_call_id}`;
  }

  /** Whether something was typed here that was not sent. */
  get hasText(): boolean {
    return (
      this.isEdited ||
      this.commentCount > 0 ||
      !!this.querySelector<HTMLTextAreaElement>("isthmus-reason textarea")?.value.trim()
    );
  }

  protected override get isOver(): boolean {
    return this.hasEnded || !this.call.confirmation_request;
  }

  protected override get isEdit(): boolean {
    return this.call.confirmation_request?.file_edit_details !== undefined;
  }

  protected override get path(): string {
    return factsOf(this.call, this.workspace).object;
  }

  protected override readonly carriesWords = true;
  protected override readonly commentsGo = "answer";

  protected override get texts() {
    const diff = this.call.confirmation_request?.file_edit_details;
    return { before: diff?.old_content ?? "", after: diff?.new_content ?? "" };
  }

  protected override get commentNote(): string {
    return t("commentsWithAny");
  }

  protected override get taskOfComments(): string {
    return this.taskId;
  }
  protected override seen: unknown;

  /** On a phone the wider grants are in the menu, too. */
  override get further(): MenuRow[] {
    if (this.isOver || this.isTelling) return [];
    const options = this.call.confirmation_request?.options ?? [];
    const grants = options.filter((option) => !isOnce(option) && !isRefusal(option));
    const rows = grants.map((option) => ({
      icon: "grant" as const,
      words: wordsOf(option).words,
      note: wordsOf(option).limit || exactLine(option.description ?? ""),
      isOff: !this.isReady || !this.#isPossible(option),
      act: () => void this.#send(option),
    }));
    const [edit, ...others] = super.further;
    return [...(edit ? [edit] : []), ...rows, ...others];
  }

  protected override get limit(): string {
    return shortLimit(factsOf(this.call, this.workspace).covers);
  }

  protected override begin(): void {
    super.begin();
    this.anchor();
    this.unsent = "";
    if (!this.isEdit) this.read();
  }

  override render() {
    const request = this.call.confirmation_request;
    if (!request) return nothing;
    const facts = factsOf(this.call, this.workspace);
    const diff = request.file_edit_details;
    const command = request.execute_details?.command;
    const tried = request.execute_details?.trial?.changes;
    const title = `${facts.verb} ${facts.object}`.trim();
    const pills = riskPills(this.call);
    return html` <article class="question" aria-label=${title}>
      <div class="card-top">
        <div class="card-title">
          <h2 tabindex="-1">
            ${facts.verb} ${facts.verb ? html`<code dir="auto">${facts.object}</code>` : facts.object}
          </h2>
          ${this.beside}
        </div>
        <isthmus-facts .facts=${factRows(facts, pills)} .subject=${this.subject}></isthmus-facts>
      </div>
      <div class="card-body" tabindex="-1">
        ${
          diff
            ? this.shownDiff(facts.object, diff.old_content, diff.new_content, countsOf(diff))
            : command !== undefined
              ? this.shownText(tried ? `${command}\n\n${tried}` : command, t("run"))
              : this.#parameters(request.generic_details?.description)
        }
      </div>
      <div class="card-foot">
        ${this.problems()}
        ${
          this.hasEnded
            ? this.#ended(request.options)
            : this.isTelling
              ? this.reason(t("reasonAll"), this.agent, phoneWord("whyAll"))
              : html`${this.hints()}
                  <div class="actions">${this.#actions(request.options)}</div>`
        }
      </div>
    </article>`;
  }

  override willUpdate(changed: Map<string, unknown>): void {
    super.willUpdate(changed);
    if (!changed.has("hasEnded") || !this.hasEnded) return;
    this.unsent = this.querySelector<HTMLTextAreaElement>("isthmus-reason textarea")?.value.trim() ?? "";
    this.isTelling = false;
  }

  /** Return who answered instead, and what was typed here, which is not lost. */
  #ended(options: ConfirmationOption[]) {
    const { by, optionId } = this.answered ?? { by: "", optionId: "" };
    const who = visibleLine(by, 80) || t("someone");
    const option = options.find((one) => one.id === optionId);
    return html`<div class="ended" role="status">
      <p>${option ? t("answeredWith", who, fullWordsOf(option)) : t("answered", who)}</p>
      ${this.unsent || this.isEdited ? html`<p>${t("notSent")}</p>` : nothing}
      ${this.unsent ? html`<pre class="command" tabindex="0" dir="auto">${this.unsent}</pre>` : nothing}
    </div>`;
  }

  #parameters(description: string | undefined) {
    const parameters = parametersOf(this.call);
    return html`${description && isLongText(description) ? this.shownText(description, "") : description ? html`<p class="prose" dir="auto">${exact(description)}</p>` : nothing}
    ${parameters === "{}" ? (description ? nothing : html`<p class="prose t2">${ask("noArguments")}</p>`) : this.shownText(parameters, t("call"), `${exactLine(this.call.tool_name)} `)}`;
  }

  #actions(options: ConfirmationOption[]) {
    const once = options.find(isOnce);
    const refusal = options.find(isRefusal);
    const wider = options.filter((option) => option !== once && option !== refusal);
    return html` ${once ? this.#option(once, "y", "primary") : nothing} ${this.unseenButton()}
      ${this.isEdit ? this.editButton() : nothing} ${this.#rejectButton(refusal)}
      <span class="right row wider desk-only"
        >${wider.map((option) => this.#option(option, String(options.indexOf(option) + 1), "quiet"))}</span
      >`;
  }

  #option(option: ConfirmationOption, key: string, more: string) {
    const { limit } = wordsOf(option);
    const words = this.#wordsOf(option);
    return this.button(
      limit
        ? html`<span class="granted"><span class="cut">${words}</span> <small class="limit">${limit}</small></span>`
        : words,
      key,
      more,
      this.sending === option.id,
      true,
      () => void this.#send(option),
      exactLine(option.description ?? ""),
      !this.#isPossible(option),
    );
  }

  /** Return the button that asks for the reason of a rejection, or rejects at once what takes none. */
  #rejectButton(refusal: ConfirmationOption | undefined) {
    const words = this.commentCount
      ? t("rejectComments", this.commentCount)
      : isForm(this.call) && refusal
        ? wordsOf(refusal).words
        : ask("rejectAsk");
    return this.button(words, "n", "", this.sending === refusal?.id && this.sending !== "", true, () =>
      this.#reject(refusal),
    );
  }

  #reject(refusal: ConfirmationOption | undefined): void {
    if (isForm(this.call) && refusal) void this.#send(refusal);
    else this.tell();
  }

  /** Return the words of a button: with comments, that it sends them. */
  #wordsOf(option: ConfirmationOption): string {
    const { words } = wordsOf(option);
    const count = this.commentCount;
    if (!count || !isOnce(option)) return words;
    return count === 1 ? t("withComment", words) : t("withComments", words, count);
  }

  #isPossible(option: ConfirmationOption): boolean {
    return isRefusal(option) || !this.unseen;
  }

  /** Whether an answer sends the document that the user was to fill in. */
  #sendsForm(option: ConfirmationOption): boolean {
    return isForm(this.call) && (isOnce(option) || option.id === "accept");
  }

  async #send(option: ConfirmationOption): Promise<void> {
    if (!this.isReady || !this.#isPossible(option)) return;
    if (isRefusal(option) && this.commentCount) {
      this.tell();
      return;
    }
    const edited = this.isEdited && !isRefusal(option) ? this.diff?.text : undefined;
    const wrong = edited !== undefined && isForm(this.call) ? jsonProblem(edited) : "";
    if (wrong) {
      this.problem = t("notJson", exactLine(wrong));
      return;
    }
    const comments = this.acceptedWords;
    // The model reads it: in the words of the terminal, whatever the language of the page.
    const words = comments && `I allowed the call of ${this.call.tool_name}, with comments:\n\n${comments}`;
    await this.#post(option.id, () => answer(this.taskId, this.call.tool_call_id, option.id, edited, words));
  }

  protected override async told(words: string): Promise<void> {
    if (!this.isReady) return;
    const refusal = this.call.confirmation_request?.options.find(isRefusal);
    if (!words && refusal) {
      await this.#send(refusal);
      return;
    }
    // The model reads it: in the words of the terminal, whatever the language of the page.
    await this.#post("tell", () => tell(this.taskId, `I rejected the call of ${this.call.tool_name}. ${words}`));
  }

  async #post(name: string, post: () => Promise<TaskRow>): Promise<void> {
    const subject = this.subject;
    this.sending = name;
    this.problem = "";
    this.#announce("answering", subject);
    try {
      const row = await post();
      this.wasStored(subject);
      this.dispatchEvent(new CustomEvent("sent", { detail: row, bubbles: true, composed: true }));
    } catch (error) {
      this.#announce("failed", subject);
      if (subject === this.subject) this.say(error);
    }
  }

  #announce(what: "answering" | "failed", subject: string): void {
    this.dispatchEvent(new CustomEvent(what, { detail: subject }));
  }

  protected override isAnswer(key: string): boolean {
    return /^[ynN1-9]$/.test(key);
  }

  protected override pressed(key: string): boolean {
    const options = this.call.confirmation_request?.options ?? [];
    const chosen =
      key === "y"
        ? options.find(isOnce)
        : key === "N"
          ? options.find(isRefusal)
          : /^[1-9]$/.test(key)
            ? options[Number(key) - 1]
            : undefined;
    if (key === "n") this.#reject(options.find(isRefusal));
    else if (chosen && this.#sendsForm(chosen) && !this.isEdited) this.edit();
    else if (chosen) void this.#send(chosen);
    else return false;
    return true;
  }
}

/** Return the facts that there are, with their names. */
function factRows({ wants, costs, touches, covers }: Facts, pills: unknown): NamedFact[] {
  return [
    { name: t("wants"), fact: wants },
    { name: t("costs"), fact: costs },
    {
      name: t("touches"),
      fact:
        touches || pills !== nothing
          ? html`${touches ? html`<code dir="auto">${touches}</code>` : nothing} ${pills}`
          : "",
    },
    { name: t("covers"), fact: covers },
  ].filter(({ fact }) => fact);
}

const PARAMETERS = new WeakMap<ToolCall, string>();

function parametersOf(call: ToolCall): string {
  let found = PARAMETERS.get(call);
  if (found === undefined) PARAMETERS.set(call, (found = JSON.stringify(call.input_parameters ?? {}, null, 2)));
  return found;
}
