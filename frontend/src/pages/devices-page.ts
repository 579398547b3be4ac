import { html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { icon } from "../frame/icons.ts";
import { canInstall, install, isInstalled, isSecure } from "../frame/installation.ts";
import { problemOf } from "../problems/problem.ts";
import { visibleLine } from "../text/safe.ts";
import { api } from "../server/session.ts";
import { LANGUAGE } from "../language.ts";
import { t } from "../words.ts";
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

function isHere(url: string): boolean {
  return /^(localhost|.*\.localhost|127\..*|\[::1\])$/.test(new URL(url, location.href).hostname);
}

/** The browsers that are let in, and codes for further ones. */
@customElement("isthmus-devices")
export class DevicesPage extends PageElement {
  @property({ type: Number }) now = Date.now();
  @state() private devices: Device[] = [];
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
    const left = Math.ceil((this.until - this.now) / 1000);
    const isLocal = isHere(location.href);
    const day = (at: number) => new Date(at * 1000).toLocaleDateString(LANGUAGE, { dateStyle: "medium" });
    return html`<main class="pane surface span">
      <div class="head"><h1>${t("devices")}</h1></div>
      <ul class="scroll rows">
        ${this.problem ? html`<li><p class="problem" role="alert">${this.problem}</p></li>` : nothing}
        ${this.devices.map(
          (device) =>
            html`<li>
              <div class="line">
                ${icon("device")}
                <span class="grow about"
                  ><span class="cut" dir="auto"
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
        )}
        <li class="pad">
          ${
            left > 0 && this.link && !isHere(this.link)
              ? html`<p class="t2">${t("addressThere")} <code class="q">${this.link.split("#")[0]}</code></p>`
              : isLocal
                ? html`<p class="t2">${codeText(t("onlyHere"))}</p>`
                : html`<p class="t2">${t("addressThere")} <code class="q">${location.origin}${PAGE}</code></p>`
          }
          ${
            left > 0
              ? html`<div class="qr-row">
                  ${this.qr ? qrCode(this.qr) : nothing}
                  <div>
                    ${this.qr ? html`<p class="t2">${t("scan")}</p>` : nothing}
                    <p class="code" aria-live="polite">${this.code.slice(0, 4)} ${this.code.slice(4)}</p>
                    <p class="t2">${t("codeFor", left)}</p>
                  </div>
                </div>`
              : html`<button class="b" @click=${() => void this.#make()}>${t("makeCode")}</button>`
          }
        </li>
        <li class="pad">
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
        </li>
        ${isSecure ? html`<li><isthmus-notify class="pad"></isthmus-notify></li>` : nothing}
      </ul>
    </main>`;
  }

  #about(device: Device, day: (at: number) => string): string {
    const by = this.devices.find((other) => other.id === device.pairedBy);
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
