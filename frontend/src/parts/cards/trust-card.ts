import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { exact } from "../../text/safe.ts";
import { api } from "../../server/session.ts";
import { type Word, t } from "../../words.ts";
import { AnswerCard } from "./answer-card.ts";

interface TrustItem {
  digest: string;
  text: string;
  kind: string;
  startsProgram: boolean;
}

interface TrustQuestion {
  isUpdate: boolean;
  omitted: number;
  items: TrustItem[];
  choices: string[];
}

const WORDS: Record<string, Word> = {
  "trust-folder": "trustFolder",
  "trust-parent": "trustParent",
  distrust: "distrust",
  allow: "trustAllow",
  refuse: "trustRefuse",
};

/** The question about what a folder's files start, reach and set; nothing while the user has nothing to decide. */
@customElement("isthmus-trust")
export class TrustCard extends AnswerCard {
  @property() workspace = "";
  /** When this changes, the server is asked again. */
  @property() occasion = "";
  @state() private question: TrustQuestion | null = null;
  #asked = "";

  protected override get subject(): string {
    return `trust/${this.workspace}/${this.question?.items.map((item) => item.digest).join() ?? ""}`;
  }

  protected override get isOver(): boolean {
    return this.question === null;
  }

  protected override readonly carriesWords = false;

  protected override begin(): void {
    if (this.question) this.read();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (this.workspace && `${this.workspace} ${this.occasion}` !== this.#asked) void this.look();
    super.willUpdate(changed);
  }

  /** Ask the server what the user has to decide about the folder. */
  async look(): Promise<void> {
    const { workspace } = this;
    const asked = (this.#asked = `${workspace} ${this.occasion}`);
    try {
      const found = await api<{ question: TrustQuestion | null }>(
        "GET",
        `trust?workspace=${encodeURIComponent(workspace)}`,
      );
      if (asked === this.#asked) this.question = found.question;
    } catch {
      // Another user, or a server of another agent: nothing is asked.
      if (asked === this.#asked) this.question = null;
    }
  }

  override render() {
    const { question } = this;
    if (!question) return nothing;
    const programs = question.items.filter((item) => item.startsProgram);
    const others = question.items.filter((item) => !item.startsProgram);
    const list = (items: TrustItem[], heading: string) =>
      items.length
        ? html`<p class="t2 sm">${heading}</p>
            <ul class="trust-items">
              ${items.map((item) => html`<li><code dir="auto">${exact(item.text)}</code></li>`)}
            </ul>`
        : nothing;
    const title = t(question.isUpdate ? "trustUpdateTitle" : "trustTitle");
    return html`<article class="question trust" aria-label=${title}>
      <div class="card-top">
        <h2 tabindex="-1">${title} <code dir="auto">${exact(this.workspace)}</code></h2>
      </div>
      <div class="card-body">
        ${list(programs, t("trustStarts"))}${list(others, t(programs.length ? "trustAlsoBrings" : "trustBrings"))}
        ${question.omitted ? html`<p class="sm">${t("trustOmitted", question.omitted)}</p>` : nothing}
      </div>
      ${this.problems()}
      <div class="actions">
        ${question.choices.map((choice, index) =>
          this.button(
            WORDS[choice] ? t(WORDS[choice]) : exact(choice),
            String(index + 1),
            index === 0 ? "primary" : "",
            this.sending === choice,
            true,
            () => void this.#send(choice),
          ),
        )}
      </div>
    </article>`;
  }

  async #send(choice: string): Promise<void> {
    if (!this.isReady || !this.question) return;
    this.sending = choice;
    this.problem = "";
    try {
      await api("POST", "trust", {
        workspace: this.workspace,
        choice,
        items: this.question.items.map((item) => item.digest),
      });
      this.wasSent = true;
    } catch (error) {
      this.say(error);
      return;
    }
    await this.look();
  }

  protected override told(): Promise<void> {
    return Promise.resolve();
  }

  protected override isAnswer(key: string): boolean {
    return /^[1-9]$/.test(key);
  }

  protected override pressed(key: string): boolean {
    const choice = /^[1-9]$/.test(key) ? this.question?.choices[Number(key) - 1] : undefined;
    if (choice === undefined) return false;
    void this.#send(choice);
    return true;
  }
}
