import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import type { SessionStatus } from "../../client.ts";
import { icon } from "../../frame/icons.ts";
import { isEnter } from "../../frame/keys.ts";
import { t } from "../../words.ts";
import { afterPress } from "../presses.ts";
import { PageElement } from "../base.ts";
import type { Suggestions } from "./suggestions.ts";
import type { ModelPick } from "./model-pick.ts";
import "./model-pick.ts";
import "./suggestions.ts";

const EFFORTS = {
  default: "effortDefault",
  minimal: "effortMinimal",
  low: "effortLow",
  medium: "effortMedium",
  high: "effortHigh",
  xhigh: "effortXhigh",
  max: "effortMax",
} as const;
/** A draft is kept on the server after this pause in typing. */
const DRAFT_MS = 800;
const MAXIMUM_IMAGE = 15_000_000;

export interface Written {
  text: string;
  /** What the user chose for this message and those after it; empty where the session stays as it is. */
  mode: string;
  model?: string;
  effort?: string;
  images: { data: string; mediaType: string; name: string }[];
}

/** The box for a message. `queued` says that the task works, so that the message waits. */
@customElement("isthmus-prompt")
export class PromptBox extends PageElement {
  @property() hint = "";
  @property({ type: Boolean }) isQueueing = false;
  @property({ type: Boolean }) isBusy = false;
  /** Whether the connection is lost: what is written stays here. */
  @property({ type: Boolean }) isLost = false;
  /** Whether it takes one line until something is written, as there is something else to look at. */
  @property({ type: Boolean }) isShort = false;
  @state() private mode = "";
  @state() private model = "";
  @state() private effort = "";
  /** What is in force in the session. */
  @property({ attribute: false }) status: SessionStatus | undefined;
  @property() draftKey = "";
  @property() contextId = "";
  /** Draft that the server has; it is taken over where nothing was written here. */
  @property() draft = "";
  @property() workspace = "";
  @state() private images: Written["images"] = [];
  /** Whether something is or was just being written: a press of what is beside the box must meet it where it is. */
  @state() private isOpen = false;
  @query("isthmus-model") private models: ModelPick | null | undefined;
  @query("textarea") private field!: HTMLTextAreaElement;
  @query("isthmus-suggestions") private suggestions!: Suggestions;

  #contextId = "";
  #timer = 0;
  /** Text that the server has as the draft, as far as this page knows. */
  #kept = "";

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("contextId") && this.contextId) {
      const isOther = this.#contextId !== "" && this.#contextId !== this.contextId;
      this.#contextId = this.contextId;
      if (isOther) this.#leave();
    }
    if (changed.has("draft") && this.hasUpdated) this.#takeDraft();
  }

  /** Take over a draft of another device, unless something else was written here. */
  #takeDraft(): void {
    const isUntouched = this.field.value === this.#kept;
    this.#kept = this.draft;
    if (!isUntouched || this.#timer || document.activeElement === this.field) return;
    this.field.value = this.draft;
    this.#grow();
  }

  #keepSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#keep(), DRAFT_MS);
  }

  #keep(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const text = this.field.value;
    if (text === this.#kept) return;
    this.#kept = text;
    this.dispatchEvent(new CustomEvent<string>("drafted", { detail: text }));
  }

  /** Begin with another session: nothing that was chosen or written for the one before goes to it. */
  #leave(): void {
    this.mode = this.model = this.effort = "";
    this.images = [];
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#kept = "";
    this.field.value = sessionStorage.getItem(this.draftKey) ?? "";
    this.#grow();
  }

  override firstUpdated(): void {
    this.field.value = sessionStorage.getItem(this.draftKey) ?? "";
    this.#grow();
  }

  write(): void {
    this.field.focus();
  }

  chooseModel(): void {
    void this.models?.open();
  }

  clear(): void {
    this.field.value = "";
    this.images = [];
    sessionStorage.removeItem(this.draftKey);
    this.#keep();
    this.#grow();
  }

  /** Take a message back that did not arrive, before what was written since. */
  putBack(text: string, images: Written["images"]): void {
    this.field.value = this.field.value ? `${text}\n${this.field.value}` : text;
    this.images = [...images, ...this.images];
    this.#type();
  }

  #close = (): void =>
    afterPress(() => {
      this.isOpen = document.activeElement === this.field;
    });

  override render() {
    const { status } = this;
    const mode = this.mode || status?.mode || "default";
    const effort = this.effort || status?.effort;
    const modes = [
      ["default", t("modeDefault")],
      ["auto_edit", t("modeAutoEdit")],
      ["plan", t("modePlan")],
      ["yolo", t("modeYolo")],
    ] as const;
    return html`<form class="prompt ${this.isShort && !this.isOpen ? "short" : ""}" @submit=${this.#submit}>
      <isthmus-suggestions .contextId=${this.contextId} .workspace=${this.workspace}></isthmus-suggestions>
      ${
        this.images.length
          ? html`<ul class="images">
              ${this.images.map(
                (image, at) =>
                  html`<li>
                    ${image.name}
                    <button
                      type="button"
                      class="b small icon quiet"
                      aria-label="${t("remove")} ${image.name}"
                      @click=${() => {
                        this.images = this.images.filter((_, other) => other !== at);
                      }}
                    >
                      ${icon("close")}
                    </button>
                  </li>`,
              )}
            </ul>`
          : nothing
      }
      <textarea
        rows="1"
        aria-label=${this.hint}
        placeholder=${this.hint}
        dir="auto"
        @focus=${() => {
          this.isOpen = true;
        }}
        @blur=${this.#close}
        @input=${this.#type}
        @keydown=${this.#press}
        @paste=${this.#paste}
      ></textarea>
      <div class="bar">
        <label class="pick" title=${t("attach")}
          >${icon("attach")}<span class="vh">${t("attach")}</span>
          <input
            class="vh"
            type="file"
            accept="image/png,image/jpeg,image/gif,image/webp"
            multiple
            @change=${(event: Event) => {
              const input = event.target as HTMLInputElement;
              void this.#take([...(input.files ?? [])]);
              input.value = "";
            }}
        /></label>
        <div class="picks">
          <select
            class="pick ${mode === "yolo" ? "warn" : ""}"
            aria-label=${t("mode")}
            @change=${(event: Event) => {
              this.mode = (event.target as HTMLSelectElement).value;
            }}
          >
            ${modes.map(([value, word]) => html`<option value=${value} .selected=${value === mode}>${word}</option>`)}
          </select>
          ${
            status?.model
              ? html`<isthmus-model
                  .contextId=${this.contextId}
                  .workspace=${this.workspace}
                  .current=${status.model}
                  .chosen=${this.model}
                  @chosen=${(event: CustomEvent<string>) => {
                    this.model = event.detail;
                  }}
                ></isthmus-model>`
              : nothing
          }
          ${
            effort
              ? html`<select
                  class="pick"
                  aria-label=${t("effort")}
                  title=${t("effort")}
                  @change=${(event: Event) => {
                    this.effort = (event.target as HTMLSelectElement).value;
                  }}
                >
                  ${["default", ...(status?.efforts ?? [])].map((value) => html`<option value=${value} .selected=${value === effort}>${value in EFFORTS ? t(EFFORTS[value as keyof typeof EFFORTS]) : value}</option>`)}
                </select>`
              : nothing
          }
        </div>
        ${this.isLost ? html`<span class="xs t3 kept">${t("keptUntilSent")}</span>` : nothing}
        <button class="b small primary" ?disabled=${this.isBusy || this.isLost}>
          ${this.isBusy ? t("sending") : this.isQueueing ? t("queue") : t("send")} <kbd>↵</kbd>
        </button>
      </div>
    </form>`;
  }

  #type = (): void => {
    sessionStorage.setItem(this.draftKey, this.field.value);
    this.#keepSoon();
    this.#grow();
    this.suggestions.field = this.field;
    this.suggestions.look();
  };

  #grow(): void {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, 200)}px`;
  }

  #press = (event: KeyboardEvent): void => {
    if (this.suggestions.press(event)) return;
    if (!isEnter(event) || event.shiftKey) return;
    event.preventDefault();
    this.#submit(event);
  };

  #paste = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])].filter((file) => file.type.startsWith("image/"));
    if (!files.length) return;
    event.preventDefault();
    void this.#take(files);
  };

  async #take(files: File[]): Promise<void> {
    for (const file of files) {
      if (file.size > MAXIMUM_IMAGE) continue;
      const bytes = new Uint8Array(await file.arrayBuffer());
      let binary = "";
      for (let at = 0; at < bytes.length; at += 32768) binary += String.fromCharCode(...bytes.subarray(at, at + 32768));
      this.images = [...this.images, { data: btoa(binary), mediaType: file.type, name: file.name || "image" }];
    }
  }

  #submit = (event: Event): void => {
    event.preventDefault();
    const text = this.field.value.trim();
    if (this.isBusy || this.isLost || (!text && !this.images.length)) return;
    const written: Written = {
      text,
      mode: this.mode,
      model: this.model,
      effort: this.effort === this.status?.effort ? "" : this.effort,
      images: this.images,
    };
    this.dispatchEvent(new CustomEvent<Written>("written", { detail: written, bubbles: true, composed: true }));
  };
}
