// Reviews and questions of companions: agents of other kinds that show their edits to the user (docs/reference/workbench.md).

import { type Pauses, ServerStore } from "./server-store.ts";
import { ApiError, api } from "./session.ts";
import { visibleLine } from "../text/safe.ts";
import type { WrittenEntry } from "../written/written.ts";

/** Times in ms. With the stream of changes reviews are asked for at its lines; this often all the same, in case one was lost. */
const PAUSES: Pauses = { hidden: 10_000, told: 60_000, untold: 1_000 };
/** While no companion runs, there is nothing to miss but its start. */
const ALONE: Pauses = { ...PAUSES, untold: 10_000 };

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
  /** Whether it is about one step: there is no yes for the session, and words about a rejection reach the agent. */
  isPermission: boolean;
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

/** A file that is open in the page of a companion. `state` is another one after the file was written. */
export interface OpenFile {
  path: string;
  active: boolean;
  state: string;
}

export interface Companion {
  id: string;
  editor: string;
  folders: string[];
  agents: string[];
  reviews: { id: string; file: string; agent: string; owner: string; opened: number; shown: boolean; new: boolean }[];
  questions: { id: string; agent: string; title: string; text: string; opened: number; permission?: boolean }[];
  ended: Outcome[];
  /** Null if an editor shows the files, and not the page. */
  files?: OpenFile[] | null;
  /** What agents wrote without a review. */
  written?: WrittenEntry;
}

export class ReviewStore extends ServerStore {
  waiting: Waiting[] = [];
  agents: string[] = [];
  folders: string[] = [];
  /** The companions whose files the page shows. */
  filePages: Companion[] = [];
  companions: Companion[] = [];
  #outcomes = new Map<string, Outcome>();
  #last = "";

  constructor() {
    super("reviewsChanged");
  }

  protected override get pauses(): Pauses {
    return this.companions.length ? PAUSES : ALONE;
  }

  protected override get isTold(): boolean {
    return this.stream.hasReviews;
  }

  /** The companions at which something waits that was written without a review. */
  get written(): (Companion & { written: WrittenEntry })[] {
    return this.companions.filter((one): one is Companion & { written: WrittenEntry } => (one.written?.turns ?? 0) > 0);
  }

  outcome(key: string): Outcome | undefined {
    return this.#outcomes.get(key);
  }

  /** Take the outcome that the server answered; an older answer under way does not bring the review back. */
  note(outcome: Outcome): void {
    this.#outcomes.set(outcome.id, { ...outcome, at: outcome.at * 1000 });
    this.waiting = this.waiting.filter((one) => one.key !== outcome.id);
    this.learn(outcome.id);
  }

  protected override async take(): Promise<boolean> {
    const { companions } = await api<{ companions: Companion[] }>("GET", "reviews");
    const said = JSON.stringify(companions);
    if (said === this.#last) return false;
    this.#last = said;
    this.#take(companions);
    return true;
  }

  #take(companions: Companion[]): void {
    this.companions = companions;
    this.agents = companions.flatMap((one) => one.agents);
    this.folders = companions.flatMap((one) => one.folders);
    this.filePages = companions.filter((one) => Array.isArray(one.files));
    for (const outcome of companions.flatMap((one) => one.ended))
      this.#outcomes.set(outcome.id, { ...outcome, at: outcome.at * 1000 });
    this.waiting = companions
      .flatMap(({ id, folders, reviews, questions }) => [
        ...reviews.map((one): Waiting => ({
          key: one.id,
          kind: "review",
          agent: one.agent,
          about: one.file,
          text: "",
          at: one.opened * 1000,
          isNew: one.new,
          isQueued: !one.shown,
          source: `${id}/${one.owner}`,
          folders,
          isPermission: false,
        })),
        ...questions.map((one): Waiting => ({
          key: one.id,
          kind: "question",
          agent: one.agent,
          about: one.title,
          text: one.text,
          at: one.opened * 1000,
          isNew: false,
          isQueued: false,
          source: "",
          folders,
          isPermission: one.permission === true,
        })),
      ])
      .filter((one) => !this.#outcomes.has(one.key))
      .sort((one, other) => other.at - one.at);
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
  return decided(`reviews/${encodeURIComponent(key)}`, {
    decision: "accept",
    state,
    ...(content === undefined ? {} : { content }),
  });
}

/** Reject a review, with words for its agent if they reach it. */
export function rejectReview(key: string, reason = ""): Promise<Decided> {
  return decided(`reviews/${encodeURIComponent(key)}`, { decision: "reject", ...(reason ? { reason } : {}) });
}

/** Answer a question; a no may have words for the agent if it asks for a permission. */
export function answerQuestion(key: string, answer: "yes" | "session" | "no", reason = ""): Promise<Decided> {
  return decided(`questions/${encodeURIComponent(key)}`, { answer, ...(reason ? { reason } : {}) });
}

export function folderOf(item: Waiting): string {
  return item.folders.find((folder) => item.about.startsWith(folder.replace(/\/$/, "") + "/")) ?? "";
}

/** Return the name of the folder that a review or question is about. */
export function folderNameOf(item: Waiting): string {
  const folder = folderOf(item) || item.folders[0] || "";
  return visibleLine(folder.replace(/\/+$/, "").split("/").at(-1) ?? "", 60);
}
