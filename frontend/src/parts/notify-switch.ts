import { html, nothing } from "lit";
import { customElement, state } from "lit/decorators.js";
import { type PushState, canNotify, letAnswer, pushState, subscribe, unsubscribe } from "../server/notifications.ts";
import { visibleLine } from "../text/safe.ts";
import { ApiError } from "../server/session.ts";
import { problemOf } from "../problems/problem.ts";
import { t } from "../words.ts";
import { PageElement } from "./base.ts";

/** The switch for notifications of this device; what it shows is what the server has. */
@customElement("isthmus-notify")
export class NotifySwitch extends PageElement {
  @state() private push: PushState | undefined;
  @state() private problem = "";
  @state() private isBusy = false;

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#try(async () => {
      this.push = await pushState();
    });
  }

  override render() {
    const { push } = this;
    const isOn = Boolean(push?.endpoint);
    const isPossible = canNotify && push?.key != null;
    return html`<h2>${t("notifications")}</h2>
      <p class="t2">${t("notificationsText")}</p>
      ${!canNotify ? html`<p class="t2">${t("cannotNotify")}</p>` : push && push.key === null ? html`<p class="t2">${visibleLine(push.reason ?? "")}</p>` : nothing}
      ${this.problem ? html`<p class="problem" role="alert">${this.problem}</p>` : nothing}
      <button
        class="switch"
        role="switch"
        aria-checked=${isOn}
        ?disabled=${this.isBusy || !push || !(isPossible || isOn)}
        @click=${() => void this.#turn(isOn)}
      >
        <span class="knob" aria-hidden="true"></span>${t("notifyThis")}
        <span class="t3">${t(isOn ? "on" : "off")}</span>
      </button>
      ${isOn && push ? this.#answers(push.answers) : nothing}`;
  }

  /** The switch for buttons that answer: it is off until the user of this very device wants them. */
  #answers(isOn: boolean) {
    return html`<p class="t2" id="answer-there">${t("answerThereText")}</p>
      <button
        class="switch"
        role="switch"
        aria-checked=${isOn}
        aria-describedby="answer-there"
        ?disabled=${this.isBusy}
        @click=${() =>
          void this.#try(async () => {
            await letAnswer(!isOn);
            this.push = await pushState();
          })}
      >
        <span class="knob" aria-hidden="true"></span>${t("answerThere")}
        <span class="t3">${t(isOn ? "on" : "off")}</span>
      </button>`;
  }

  async #turn(isOn: boolean): Promise<void> {
    await this.#try(async () => {
      if (isOn) await unsubscribe();
      else if (this.push?.key && !(await subscribe(this.push.key))) this.problem = t("forbidden");
      this.push = await pushState();
    });
  }

  async #try(act: () => Promise<void>): Promise<void> {
    this.problem = "";
    this.isBusy = true;
    try {
      await act();
    } catch (error) {
      this.problem =
        error instanceof ApiError ? problemOf(error) : `${t("noPushService")} ${visibleLine(String(error), 200)}`;
    } finally {
      this.isBusy = false;
    }
  }
}
