// Short messages at the bottom left: what happened elsewhere, and is kept on another page.

import { html, nothing } from "lit";
import { stateMark } from "./icons.ts";
import { visibleLine } from "../text/safe.ts";
import { type SessionFacts, type SessionState, sessionPath, taskStateOf } from "../server/sessions.ts";
import { f } from "./words.ts";

/** Time in ms for which a message is shown, unless the pointer is above it. */
const SHOWN_MS = 6000;
/** Maximum number of messages at the same time; the oldest goes first. */
const MAXIMUM = 3;

export interface Toast {
  /** What it is about: a later message about the same replaces it. */
  key: string;
  text: string;
  state: SessionState;
  /** Address of the page that keeps it. */
  path: string;
}

/** Return the messages about sessions that have ended between two states of the list, and are not in view. */
export function endsIn(before: readonly SessionFacts[], after: readonly SessionFacts[], shown: string): Toast[] {
  const known = new Map(before.map((session) => [session.contextId, session]));
  return after.flatMap((session) => {
    const { contextId, state, title } = session;
    const old = known.get(contextId)?.state;
    const hasEnded = (state === "done" || state === "failed") && (old === "working" || old === "waiting");
    if (!hasEnded || contextId === shown) return [];
    const name = visibleLine(title, 80) || contextId;
    const text = f(state === "done" ? "toastDone" : "toastFailed", name);
    return [{ key: contextId, text, state, path: sessionPath(contextId) }];
  });
}

/** The messages that are shown; each goes by itself. */
export class Toasts {
  toasts: readonly Toast[] = [];
  #timers = new Map<string, number>();

  constructor(private readonly changed: () => void) {}

  add(toast: Toast): void {
    const others = this.toasts.filter(({ key }) => key !== toast.key);
    for (const { key } of others.splice(0, Math.max(0, others.length - MAXIMUM + 1))) this.#stop(key);
    this.toasts = [...others, toast];
    this.#begin(toast.key);
    this.changed();
  }

  /** Keep all of them while the pointer is above them. */
  hold(): void {
    for (const key of [...this.#timers.keys()]) this.#stop(key);
  }

  /** The pointer has left: each is shown for its whole time again. */
  release(): void {
    for (const { key } of this.toasts) this.#begin(key);
  }

  remove(key: string): void {
    this.#stop(key);
    this.toasts = this.toasts.filter((toast) => toast.key !== key);
    this.changed();
  }

  #begin(key: string): void {
    this.#stop(key);
    this.#timers.set(
      key,
      window.setTimeout(() => this.remove(key), SHOWN_MS),
    );
  }

  #stop(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}

/** Distance in pixels between messages and what they must not cover. */
const GAP = 12;

/** Lift the messages above the buttons of answers that they would cover. */
export function keepOffAnswers(list: HTMLElement): void {
  const { left, right } = list.getBoundingClientRect();
  const bars = [...document.querySelectorAll(".actions")].map((bar) => bar.getBoundingClientRect());
  const covered = bars.filter((bar) => bar.width > 0 && bar.left < right && bar.right > left);
  const lift = Math.max(0, ...covered.map((bar) => innerHeight - bar.top + GAP));
  list.style.bottom = lift ? `${lift}px` : "";
}

export function toastList(toasts: Toasts) {
  return html`<div
    class="toasts"
    role="log"
    aria-live="polite"
    aria-label=${f("messages")}
    @pointerenter=${() => toasts.hold()}
    @pointerleave=${() => toasts.release()}
  >
    ${toasts.toasts.map(
      ({ key, text, state, path }) =>
        html`<div class="toast">
          ${stateMark(taskStateOf(state))}<span class="grow" dir="auto">${text}</span
          >${path ? html`<a class="b small quiet" href=${path} @click=${() => toasts.remove(key)}>${f("show")}</a>` : nothing}
        </div>`,
    )}
  </div>`;
}
