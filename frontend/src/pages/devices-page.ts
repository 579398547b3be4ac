import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../frame/icons.ts";
import { canInstall, install, isInstalled, isSecure } from "../frame/installation.ts";
import { problemOf } from "../problems/problem.ts";
import { visibleLine } from "../text/safe.ts";
import { api } from "../server/session.ts";
import { LANGUAGE } from "../language.ts";
import { t } from "../words.ts";
import { shownCode } from "../frame/code.ts";
import { deviceFacts, isThisMachine } from "../frame/device-facts.ts";
import { f } from "../frame/words.ts";
import { failedToLoad, platesOf } from "../parts/loading.ts";
import "../styles/devices.css";
import { PageElement } from "../parts/base.ts";
import { qrCode } from "../parts/qr-code.ts";
import "../parts/notify-switch.ts";
import { PAGE } from "../place.ts";
import { codeText } from "../parts/code-text.ts";

interface Device {
  id: string;
  label: string;
  paired: number;
  expires: number;
  used: number | null;
  pairedBy: string | null;
  /** Ids of the devices that it let in, which go with it. */
  pairs: string[];
}

/** Time in seconds for which a code can be used. */
const SECONDS = 60;

/** Draw what is left of the time of a code, as a part of a whole ring. */
function ring(part: number, seconds: number) {
  const length = 2 * Math.PI * 15;
  return html`<svg class="left-ring" viewBox="0 0 36 36" aria-hidden="true">
    <circle cx="18" cy="18" r="15" />
    <circle class="part" cx="18" cy="18" r="15" stroke-dasharray="${Math.min(1, part) * length} ${length}" />
    <text x="18" y="18">${seconds}</text>
  </svg>`;
}

function isHere(url: string): boolean {
  return isThisMachine(new URL(url, location.href).hostname);
}

/** The browsers that are let in, and codes for further ones. */
@customElement("isthmus-devices")
export class DevicesPage extends PageElement {
  @property({ type: Number }) now = Date.now();
  /** Whether the user runs the server, and so has settings. */
  @property({ type: Boolean }) isOwner = false;
  /** Undefined until they are loaded. */
  @state() private devices: Device[] | undefined;
  @state() private own = "";
  @state() private code = "";
  @state() private link = "";
  @state() private qr: string[] | undefined;
  @state() private until = 0;
  @state() private problem = "";

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#load();
  }

  override render() {
    return html`<main class="pane surface span">
      <div class="head devices-head">
        ${this.isOwner ? html`<a class="sm t3 target" href="${PAGE}settings">${t("settings")}</a><span class="t3">/</span>` : nothing}
        <h1>${t("devices")}</h1>
      </div>
      <div class="scroll" tabindex="-1">
        <div class="devices">
          ${this.problem ? (this.devices ? html`<p class="problem" role="alert">${this.problem}</p>` : failedToLoad(this.problem, () => void this.#load())) : nothing}
          ${this.#pairing()} ${this.#list()} ${this.#program()}
          ${isSecure ? html`<isthmus-notify></isthmus-notify>` : nothing}
        </div>
      </div>
    </main>`;
  }

  /** A code for another device, and what that device may do then. */
  #pairing() {
    const left = Math.ceil((this.until - this.now) / 1000);
    return html`<section>
      <h2 class="title">${f("pairAnother")}</h2>
      <p class="t2">${t("scan")}</p>
      <div class="code-card">
        ${left > 0 ? this.#code(left) : html`<button class="b" @click=${() => void this.#make()}>${t("makeCode")}</button>`}
      </div>
      ${deviceFacts()}
    </section>`;
  }

  #code(left: number) {
    const isHereOnly = isHere(this.link || location.href) && isHere(location.href);
    const address = this.link && !isHere(this.link) ? this.link.split("#")[0] : `${location.origin}${PAGE}`;
    return html`${this.qr ? qrCode(this.qr) : nothing}
      <div>
        ${
          isHereOnly
            ? html`<p class="t2 sm">${codeText(t("onlyHere"))}</p>`
            : html`<p class="sm t3">${f("address")}</p>
                <p class="mono address">${address}</p>`
        }
        <p class="sm t3">${t("code")}</p>
        <p class="code" aria-live="polite">${shownCode(this.code)}</p>
        <p class="row t2 sm left">
          ${ring(left / SECONDS, left)}<span
            >${f(left === 1 ? "secondLeft" : "secondsLeft", left)}<br />${f("thenAgain")}</span
          >
        </p>
      </div>`;
  }

  #list() {
    const day = (at: number) => new Date(at * 1000).toLocaleDateString(LANGUAGE, { dateStyle: "medium" });
    return html`<section>
      <h2>${f("yourDevices")}</h2>
      <ul class="rows">
        ${
          this.devices?.map(
            (device) =>
              html`<li>
                <div class="line">
                  ${icon(device.id === this.own ? "globe" : "device")}
                  <span class="grow about"
                    ><span class="cut md" dir="auto"
                      >${visibleLine(device.label)}${device.id === this.own ? html` <span class="t3">· ${t("thisDevice")}</span>` : nothing}</span
                    >
                    <span class="t3 xs">${this.#about(device, day)}</span></span
                  >
                  <button
                    class="b small"
                    @click=${() => void this.#remove(device.id)}
                    aria-label="${t("remove")} ${visibleLine(device.label)}"
                  >
                    ${t("remove")}
                  </button>
                </div>
              </li>`,
          ) ?? (this.problem ? nothing : platesOf(2))
        }
      </ul>
    </section>`;
  }

  #program() {
    return html`<section>
      <h2>${t("asProgram")}</h2>
      ${
        !isSecure
          ? html`<p class="t2" data-part="not-secure">${codeText(t("notSecure"))}</p>`
          : isInstalled()
            ? html`<p class="t2">${t("installed")}</p>`
            : canInstall()
              ? html`<button class="b" @click=${() => void install().then(() => this.requestUpdate())}>
                  ${t("install")}
                </button>`
              : html`<p class="t2">${t("installHow")}</p>`
      }
    </section>`;
  }

  #about(device: Device, day: (at: number) => string): string {
    const by = this.devices?.find((other) => other.id === device.pairedBy);
    return [
      by ? t("pairedBy", visibleLine(by.label)) : "",
      device.used ? t("lastUsed", day(device.used)) : "",
      device.pairs.length ? t(device.pairs.length === 1 ? "pairsOne" : "pairsMore", device.pairs.length) : "",
      t("until", day(device.expires)),
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
  }

  async #load(): Promise<void> {
    await this.#try(async () => {
      const found = await api<{ devices: Device[]; this: string }>("GET", "devices");
      this.devices = found.devices;
      this.own = found.this;
    });
  }

  async #make(): Promise<void> {
    await this.#try(async () => {
      const made = await api<{ code: string; seconds: number; link: string; qr: string[] | null }>("POST", "codes", {
        origin: location.origin,
      });
      this.code = made.code;
      this.link = made.link;
      this.qr = made.qr ?? undefined;
      this.until = Date.now() + made.seconds * 1000;
    });
  }

  async #remove(id: string): Promise<void> {
    await this.#try(async () => {
      await api("DELETE", `devices/${encodeURIComponent(id)}`);
      if (id === this.own) location.reload();
      else await this.#load();
    });
  }

  async #try(act: () => Promise<void>): Promise<void> {
    this.problem = "";
    try {
      await act();
    } catch (error) {
      this.problem = problemOf(error);
    }
  }
}
