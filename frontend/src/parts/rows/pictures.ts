import { html, nothing } from "lit";
import { customElement, property, query, state } from "lit/decorators.js";
import type { Picture } from "../../task/kept-calls.ts";
import { PAGE } from "../../place.ts";
import { token } from "../../server/session.ts";
import { t } from "../../words.ts";
import { PageElement } from "../base.ts";

/** Pictures of one row that are fetched at most. */
const MAXIMUM = 6;
/** The kinds that the server sends. */
const DRAWN = /^image\/(png|jpeg|gif|webp)$/;

/** The pictures of a message or a result, small; a tap opens one. What cannot be fetched is left out. */
@customElement("isthmus-pictures")
export class Pictures extends PageElement {
  @property({ attribute: false }) pictures: readonly Picture[] = [];
  /** What they belong to. */
  @property() label = "";
  /** Addresses of the pictures in this browser, in order; empty for one that has not come. */
  @state() private addresses: readonly string[] = [];
  @state() private open = -1;
  @query("dialog") private dialog!: HTMLDialogElement | null;
  #shown = "";

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#release();
    this.#shown = "";
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.hasUpdated) this.#look();
  }

  override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("pictures")) this.#look();
  }

  override render() {
    const words = (at: number): string => t("pictureOf", this.label, at + 1, this.addresses.length);
    return html`${this.addresses.map((address, at) =>
      address
        ? html`<button
            class="thumb"
            @click=${() => {
              this.open = at;
            }}
          >
            <img src=${address} alt=${words(at)} />
          </button>`
        : nothing,
    )}${
      this.open >= 0
        ? html`<dialog
            class="picture"
            aria-label=${words(this.open)}
            @close=${() => {
              this.open = -1;
            }}
          >
            <img src=${this.addresses[this.open] ?? ""} alt=${words(this.open)} />
            <form method="dialog"><button class="b small">${t("close")}</button></form>
          </dialog>`
        : nothing
    }`;
  }

  override updated(changed: Map<string, unknown>): void {
    if (changed.has("open") && this.open >= 0) this.dialog?.showModal();
  }

  #look(): void {
    const pictures = this.pictures.slice(0, MAXIMUM);
    const shown = pictures.map(({ task, event, number }) => `${task}/${event}/${number}`).join();
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#release();
    this.addresses = pictures.map(() => "");
    for (const [at, picture] of pictures.entries()) void this.#fetch(at, picture, shown);
  }

  async #fetch(at: number, { task, event, number }: Picture, shown: string): Promise<void> {
    try {
      const response = await fetch(`${PAGE}api/pictures/${encodeURIComponent(task)}/${event}/${number}`, {
        headers: { Authorization: `Bearer ${token()}` },
        credentials: "omit",
      });
      if (!response.ok || !DRAWN.test(response.headers.get("content-type") ?? "")) return;
      const blob = await response.blob();
      if (shown !== this.#shown || !this.isConnected) return;
      const address = URL.createObjectURL(blob);
      this.addresses = this.addresses.map((known, place) => (place === at ? address : known));
    } catch {
      // Without a connection the row is shown without its picture.
    }
  }

  #release(): void {
    for (const address of this.addresses) if (address) URL.revokeObjectURL(address);
    this.addresses = [];
    this.open = -1;
  }
}
