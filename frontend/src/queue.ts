// Messages that wait in this tab until the work under way in their session has ended. The server has not got them yet.

import type { Written } from "./parts/prompt-box.ts";

const MAXIMUM = 20;

export interface Queued extends Written {
  id: number;
}

/** The messages of one session, in order. They outlive a reload of the tab, and images too large for that do not. */
export class MessageQueue {
  #messages: Queued[];
  constructor(private readonly contextId: string) {
    try {
      this.#messages = JSON.parse(sessionStorage.getItem(this.#key) ?? "[]") as Queued[];
    } catch {
      this.#messages = [];
    }
  }

  get #key(): string {
    return `queue:${this.contextId}`;
  }

  get messages(): readonly Queued[] {
    return this.#messages;
  }

  get isFull(): boolean {
    return this.#messages.length >= MAXIMUM;
  }

  add(written: Written): void {
    const id = Math.max(0, ...this.#messages.map((message) => message.id)) + 1;
    this.#store([...this.#messages, { ...written, id }]);
  }

  remove(id: number): void {
    this.#store(this.#messages.filter((message) => message.id !== id));
  }

  #store(messages: Queued[]): void {
    this.#messages = messages;
    try {
      if (messages.length) sessionStorage.setItem(this.#key, JSON.stringify(messages));
      else sessionStorage.removeItem(this.#key);
    } catch {
      sessionStorage.removeItem(this.#key);
    }
  }
}
