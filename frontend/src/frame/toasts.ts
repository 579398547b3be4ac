// Short messages at the bottom left: what happened elsewhere, and is kept on another page.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { icon, stateMark } from "./icons.ts";
import { visibleLine } from "../text/safe.ts";
import type { TaskState } from "../server/protocol.ts";
import { type SessionFacts, sessionPath, taskStateOf } from "../server/sessions.ts";
import { f } from "./words.ts";

/** Time in ms for which a message is shown, unless the pointer is above it. */
const SHOWN_MS = 6000;
/** Maximum number of messages at the same time; the oldest goes first. */
const MAXIMUM = 3;

export interface Toast {
  /** What it is about: a later message about the same replaces it. */
  key: string;
  text: string;
  state: TaskState;
  /** Address of the page that keeps it. */
  path: string;
}

/** Return whether a message stays until it was read. */
const stays = ({ state }: Toast): boolean => state === "failed" || state === "rejected";

/** Return the messages about sessions that have ended between two states of the list, and are not in view. */
export function endsIn(before: readonly SessionFacts[], after: readonly SessionFacts[], shown: string): Toast[] {
  const known = new Map(before.map((session) => [session.contextId, session]));
  return after.flatMap((session) => {
    const { contextId, state, title } = session;
    const old = known.get(contextId)?.state;
    const hasEnded = (state === "done" || state === "failed") && (old === "working" || old === "waiting");
    if (!hasEnded || contextId === shown) return [];
    const name = visibleLine(title, 80) || contextId;
    const ended = taskStateOf(session);
    const text = f(ended === "completed" ? "toastDone" : ended === "canceled" ? "toastCanceled" : "toastFailed", name);
    return [{ key: contextId, text, state: ended, path: sessionPath(contextId) }];
  });
}

/** The messages that are shown; each goes by itself. */
export class Toasts {
  toasts: readonly Toast[] = [];
  #timers = new Map<string, number>();
  #isHeld = false;

  constructor(private readonly changed: () => void) {}

  add(toast: Toast): void {
    const others = this.toasts.filter(({ key }) => key !== toast.key);
    // What passes by itself makes room before what is to be read.
    for (let more = others.length - MAXIMUM + 1; more > 0; more -= 1) {
      const passing = others.findIndex((one) => !stays(one));
      for (const { key } of others.splice(Math.max(0, passing), 1)) this.#stop(key);
    }
    this.toasts = [...others, toast];
    this.#begin(toast.key);
    this.changed();
  }

  /** Keep all of them while the pointer is above them. */
  hold(): void {
    this.#isHeld = true;
    for (const key of [...this.#timers.keys()]) this.#stop(key);
  }

  /** The session of a message is in view: it was read. */
  read(contextId: string): void {
    if (this.toasts.some(({ key }) => key === contextId)) this.remove(contextId);
  }

  /** The pointer has left: each is shown for its whole time again. */
  release(): void {
    this.#isHeld = false;
    for (const { key } of this.toasts) this.#begin(key);
  }

  remove(key: string): void {
    this.#stop(key);
    this.toasts = this.toasts.filter((toast) => toast.key !== key);
    if (!this.toasts.length) this.#isHeld = false; // nothing is left to leave
    this.changed();
  }

  #begin(key: string): void {
    this.#stop(key);
    const toast = this.toasts.find((one) => one.key === key);
    if (!toast || stays(toast) || this.#isHeld) return;
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
    ${repeat(
      toasts.toasts,
      ({ key }) => key,
      (toast) => toastRow(toast, () => toasts.remove(toast.key)),
    )}
  </div>`;
}

function toastRow({ text, state, path }: Toast, remove: () => void) {
  return html`<div class="toast">
    ${stateMark(state)}<span class="grow" dir="auto">${text}</span>
    ${path ? html`<a class="b small quiet" href=${path} @click=${remove}>${f("show")}</a>` : nothing}
    <button class="b small quiet icon" aria-label="${f("dismiss")}: ${text}" title=${f("dismiss")} @click=${remove}>
      ${icon("close")}
    </button>
  </div>`;
}
