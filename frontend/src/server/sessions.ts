// The sessions of the user: the tasks of one conversation as a unit (docs/reference/workbench.md), kept current while the page is shown.

import { changeStream } from "./changes.ts";
import { PAGE } from "../place.ts";
import type { TaskRow, TaskState } from "./protocol.ts";
import { Repeated } from "./repeated.ts";
import { api } from "./session.ts";

export type SessionState = "waiting" | "working" | "done" | "failed";

/** A session without its turns. Times are in seconds since 1970. */
export interface SessionFacts {
  contextId: string;
  /** Name that the user gave, otherwise the title from the first prompt. */
  title: string;
  given: string;
  workspace: string;
  agent: string;
  state: SessionState;
  turns: number;
  began: number;
  changed: number;
  questions: number;
  archived: boolean;
  /** Id of the task of the newest turn, and its state; a server of an earlier version does not say the state. */
  task: string;
  turnState?: TaskState;
  /** Beginning of the prompt in which a word was found that is nowhere else. */
  prompt?: string;
}

export interface Turn {
  id: string;
  title: string;
  state: TaskState;
  began: number;
  changed: number;
  questions: number;
}

/** A message that waits on the server until the turn under way has ended. */
export interface Queued {
  id: string;
  text: string;
  mode: string;
  model: string;
  /** Names of its images. */
  images: string[];
  /** Why it was not sent; it and those behind it wait for the user then. */
  problem: string;
}

export interface WholeSession extends SessionFacts {
  tasks: Turn[];
  queued: Queued[];
  /** What the user has written and not sent, on whichever device. */
  draft: string;
  /** The branch that is checked out in its folder; empty if that is not known. */
  branch?: string;
}

export interface SessionPage {
  sessions: SessionFacts[];
  searched: number;
  next: string;
}

/** Lines of one moment cost one list. */
const GATHER_MS = 60;

/** Return the address of a session, or of one of its turns by the id of its task. */
export function sessionPath(contextId: string, taskId = ""): string {
  return `${PAGE}session/${encodeURIComponent(contextId)}${taskId ? `/${encodeURIComponent(taskId)}` : ""}`;
}

/** The session that an address names, and the turn: its number from 1, or the id of its task. */
export interface SessionAddress {
  contextId: string;
  turn: string | number;
}

/** Return what an address below the page names; undefined if it is not one of a session. */
export function sessionOf(path: string): SessionAddress | undefined {
  const [kind, contextId, first, second, ...rest] = path.split("/").map(decoded);
  if (kind !== "session" || !contextId || rest.length) return undefined;
  if (second === undefined) return { contextId, turn: first ?? "" };
  return first === "turn" && /^[1-9]\d{0,6}$/.test(second) ? { contextId, turn: Number(second) } : undefined;
}

export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the index of the turn that an address means; -1 for one that is not there. */
export function turnAt(tasks: readonly { id: string }[], turn: string | number): number {
  const at = typeof turn === "number" ? turn - 1 : tasks.findIndex((task) => task.id === turn);
  return at < tasks.length ? at : -1;
}

/** Return the state of a task that stands for the state of a session: one that was cancelled has not failed. */
export function taskStateOf({ state, turnState }: Pick<SessionFacts, "state" | "turnState">): TaskState {
  if (state === "failed" && turnState === "canceled") return "canceled";
  return state === "waiting" ? "input-required" : state === "done" ? "completed" : state;
}

/** Put a new first page before what is known: what the page would have, and has not, was removed or archived. */
export function withFirstPage(known: readonly SessionFacts[], page: SessionPage): SessionFacts[] {
  const fresh = new Set(page.sessions.map((session) => session.contextId));
  const last = page.next ? (page.sessions.at(-1)?.changed ?? -Infinity) : -Infinity;
  return [
    ...page.sessions,
    ...known.filter((session) => !fresh.has(session.contextId) && page.next !== "" && session.changed < last),
  ];
}

export function listSessions(
  query: { words?: string; state?: SessionState | ""; archived?: boolean; after?: string } = {},
): Promise<SessionPage> {
  const { words = "", state = "", archived = false, after = "" } = query;
  const asked = new URLSearchParams({ words, state, archived: archived ? "1" : "", after });
  return api<SessionPage>("GET", `sessions?${asked}`);
}

export function wholeSession(contextId: string): Promise<WholeSession> {
  return api<WholeSession>("GET", `sessions/${encodeURIComponent(contextId)}`);
}

/** Let a message wait until the turn under way of a session has ended. Throws an ApiError. */
export async function queueMessage(contextId: string, id: string, text: string): Promise<void> {
  const change: Change = { do: "queue", id, text, mode: "", model: "", images: [] };
  await api("POST", `sessions/${encodeURIComponent(contextId)}`, change);
}

type Image = { data: string; mediaType: string; name: string };
export type Change =
  | { do: "rename"; title: string }
  | { do: "archive" | "restore" }
  | { do: "draft"; text: string }
  | { do: "queue"; id: string; text: string; mode: string; model: string; images: Image[] }
  | { do: "edit"; id: string; text: string }
  | { do: "remove" | "first" | "send"; id: string };

/** The list of sessions that are not archived, changed last first, as far as it was asked for. */
export class SessionList extends EventTarget {
  sessions: SessionFacts[] = [];
  isLoaded = false;
  #known = new Map<string, SessionFacts>();
  #told = new Map<string, number>();
  #next = "";
  #hasMore = false;
  #isStarted = false;
  readonly #asking = new Repeated(() => this.#ask(), GATHER_MS);

  /** Begin to keep the list current; `EventTarget`s given tell of further occasions to ask by "change". */
  start(...others: EventTarget[]): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const soon = () => this.#soon();
    const sessionChanged = (contextId: string) => {
      this.#told.set(contextId, this.told(contextId) + 1);
      this.dispatchEvent(new Event("change"));
    };
    changeStream.listen({ opened: soon, changed: soon, lost: soon, sessionChanged });
    for (const other of others) other.addEventListener("change", soon);
    this.#soon();
  }

  /** How often the record of a session was told to have changed. */
  told(contextId: string): number {
    return this.#told.get(contextId) ?? 0;
  }

  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** What is known of a session, also of an archived one. */
  get(contextId: string): SessionFacts | undefined {
    return this.#known.get(contextId);
  }

  /** Return the title of the session of a task; that of the task until the session is known. */
  titleOf(task: TaskRow): string {
    return this.get(task.contextId)?.title ?? task.title;
  }

  /** Take over what was learned of a session elsewhere. */
  put(session: SessionFacts): void {
    this.#known.set(session.contextId, session);
    const at = this.sessions.findIndex((known) => known.contextId === session.contextId);
    if (at >= 0) this.sessions = session.archived ? this.sessions.toSpliced(at, 1) : this.sessions.with(at, session);
    this.dispatchEvent(new Event("change"));
  }

  async more(): Promise<void> {
    const page = await listSessions({ after: this.#next });
    const known = new Set(this.sessions.map((session) => session.contextId));
    this.sessions = [...this.sessions, ...page.sessions.filter((session) => !known.has(session.contextId))];
    this.#take(page);
    this.dispatchEvent(new Event("change"));
  }

  /** Change the record of a session. Throws an ApiError. */
  async change(contextId: string, change: Change): Promise<WholeSession> {
    const session = await api<WholeSession>("POST", `sessions/${encodeURIComponent(contextId)}`, change);
    this.put(session);
    this.#soon();
    return session;
  }

  #soon(): void {
    if (this.#isStarted) this.#asking.soon();
  }

  async #ask(): Promise<void> {
    const page = await listSessions().catch(() => undefined);
    if (!page) return; // what is shown stays; the store of tasks says that the server is not reached
    const before = this.sessions;
    this.sessions = withFirstPage(before, page);
    if (!this.isLoaded || this.sessions.length <= page.sessions.length) this.#take(page);
    for (const session of page.sessions) this.#known.set(session.contextId, session);
    this.isLoaded = true;
    if (JSON.stringify(before) !== JSON.stringify(this.sessions)) this.dispatchEvent(new Event("change"));
  }

  #take(page: SessionPage): void {
    this.#next = page.next;
    this.#hasMore = page.next !== "";
    for (const session of page.sessions) this.#known.set(session.contextId, session);
  }
}
