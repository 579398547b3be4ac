// Reviews and questions of companions: agents of other kinds that show their edits to the user (docs/reference/workbench.md).

import { ApiError, api } from "./session.ts";

const SHOWN_MS = 1_000;
const HIDDEN_MS = 10_000;
/** While no companion runs, there is nothing to miss but its start. */
const ALONE_MS = 10_000;

/** How a review or question ended, and by whom. `at` is in milliseconds. */
export interface Outcome {
  id: string;
  about: string;
  agent: string;
  decision: "accepted" | "rejected" | "closed" | "yes" | "session" | "no";
  by: string;
  at: number;
  problem: string;
}

/** A review or question that waits. `at` is in milliseconds, 0 if it is not known; `about` is a path or a title. */
export interface Waiting {
  key: string;
  kind: "review" | "question";
  agent: string;
  about: string;
  text: string;
  at: number;
  isNew: boolean;
  isQueued: boolean;
  /** The agent that asks, among all agents of the companion: reviews of one source can be answered together. */
  source: string;
  folders: string[];
}

/** A file that is not text: its size if it was read, its kind if it is known, and an image that can be shown in base64. */
export interface Before {
  bytes: number | null;
  type: string | null;
  data: string | null;
}

/** The texts of a review; `old` is null for a new file. `state` stands for what is shown. */
export interface Detail {
  id: string;
  file: string;
  agent: string;
  old: string | null;
  new: string;
  /** What the file is now, if it is not text. */
  before: Before | null;
  state: string;
  /** Whether words about a rejection reach the agent. */
  reasons: boolean;
}

interface Companion {
  id: string;
  editor: string;
  folders: string[];
  agents: string[];
  reviews: { id: string; file: string; agent: string; owner: string; opened: number; shown: boolean; new: boolean }[];
  questions: { id: string; agent: string; title: string; text: string; opened: number }[];
  ended: Outcome[];
}

export class ReviewStore extends EventTarget {
  waiting: Waiting[] = [];
  agents: string[] = [];
  folders: string[] = [];
  isReached = true;
  isLoaded = false;
  #outcomes = new Map<string, Outcome>();
  #timer = 0;
  #last = "";
  #asking: Promise<void> | undefined;
  #isStopped = true;
  #isAlone = false;

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    document.addEventListener("visibilitychange", this.refresh);
    addEventListener("online", this.refresh);
    this.refresh();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.refresh);
    removeEventListener("online", this.refresh);
  }

  outcome(key: string): Outcome | undefined {
    return this.#outcomes.get(key);
  }

  /** Take the outcome that the server answered; an older answer under way does not bring the review back. */
  note(outcome: Outcome): void {
    this.#outcomes.set(outcome.id, { ...outcome, at: outcome.at * 1000 });
    this.waiting = this.waiting.filter((one) => one.key !== outcome.id);
    this.#tell();
    this.refresh();
  }

  refresh = (): void => {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
      if (!this.#isStopped) this.#timer = window.setTimeout(this.refresh, document.hidden ? HIDDEN_MS : this.#isAlone ? ALONE_MS : SHOWN_MS);
    });
  };

  async #ask(): Promise<void> {
    try {
      const { companions } = await api<{ companions: Companion[] }>("GET", "reviews");
      this.#isAlone = companions.length === 0;
      const said = JSON.stringify(companions), hasChanged = said !== this.#last || !this.isLoaded || !this.isReached;
      this.isReached = this.isLoaded = true;
      if (!hasChanged) return;
      this.#last = said;
      this.#take(companions);
      this.#tell();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.stop();
        this.dispatchEvent(new Event("refused"));
      } else if (this.isReached) {
        this.isReached = false;
        this.#tell();
      }
    }
  }

  #take(companions: Companion[]): void {
    this.agents = companions.flatMap((one) => one.agents);
    this.folders = companions.flatMap((one) => one.folders);
    for (const outcome of companions.flatMap((one) => one.ended)) this.#outcomes.set(outcome.id, { ...outcome, at: outcome.at * 1000 });
    this.waiting = companions.flatMap(({ id, folders, reviews, questions }) => [
      ...reviews.map((one): Waiting => ({
        key: one.id, kind: "review", agent: one.agent, about: one.file, text: "", at: one.opened * 1000, isNew: one.new, isQueued: !one.shown, source: `${id}/${one.owner}`, folders,
      })),
      ...questions.map((one): Waiting => ({
        key: one.id, kind: "question", agent: one.agent, about: one.title, text: one.text, at: one.opened * 1000, isNew: false, isQueued: false, source: "", folders,
      })),
    ]).filter((one) => !this.#outcomes.has(one.key)).sort((one, other) => other.at - one.at);
  }

  #tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}

export function loadReview(key: string): Promise<Detail> {
  return api<Detail>("GET", `reviews/${encodeURIComponent(key)}`);
}

/** The answer to a decision: how it ended, or that something else was seen than what is there. */
export type Decided = { is: "ended"; outcome: Outcome | null; isLate: boolean } | { is: "changed" };

async function decided(name: string, body: unknown): Promise<Decided> {
  try {
    const { outcome } = await api<{ outcome: Outcome }>("POST", name, body);
    return { is: "ended", outcome, isLate: false };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    if (error.body.changed === true) return { is: "changed" };
    return { is: "ended", outcome: (error.body.outcome as Outcome | null | undefined) ?? null, isLate: true };
  }
}

/** Accept what was seen, with another text if it was changed. Throws an ApiError if it is refused or the server is not reached. */
export function acceptReview(key: string, state: string, content?: string): Promise<Decided> {
  return decided(`reviews/${encodeURIComponent(key)}`, { decision: "accept", state, ...(content === undefined ? {} : { content }) });
}

/** Reject a review, with words for its agent if they reach it. */
export function rejectReview(key: string, reason = ""): Promise<Decided> {
  return decided(`reviews/${encodeURIComponent(key)}`, { decision: "reject", ...(reason ? { reason } : {}) });
}

export function answerQuestion(key: string, answer: "yes" | "session" | "no"): Promise<Decided> {
  return decided(`questions/${encodeURIComponent(key)}`, { answer });
}

export function folderOf(item: Waiting): string {
  return item.folders.find((folder) => item.about.startsWith(folder.replace(/\/$/, "") + "/")) ?? "";
}
