// Whether the page is shown on a phone: narrow, or held sideways. styles/phone.css has the same condition.

import type { ReactiveController, ReactiveControllerHost } from "lit";

export const PHONE = "(max-width: 719px), (max-height: 480px) and (pointer: coarse)";

/** Tells an element whether it is on a phone, and draws it anew when that changes. */
export class PhoneWatch implements ReactiveController {
  readonly #query = matchMedia(PHONE);

  constructor(private readonly host: ReactiveControllerHost) {
    host.addController(this);
  }

  get isPhone(): boolean {
    return this.#query.matches;
  }

  hostConnected(): void {
    this.#query.addEventListener("change", this.#changed);
  }

  hostDisconnected(): void {
    this.#query.removeEventListener("change", this.#changed);
  }

  #changed = (): void => {
    this.host.requestUpdate();
  };
}
