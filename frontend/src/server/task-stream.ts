// The events of a task as a stream of A2A 1.0, which goes on where it broke off.

import { headers } from "../client.ts";
import { readFrames } from "./event-stream.ts";
import { SERVER } from "../place.ts";
import { ENDED, type TaskEvent, type ToolCall, eventsOf } from "./protocol.ts";
import { ApiError, refusalIn } from "./session.ts";
import { problemOf } from "../problems/problem.ts";

const RETRY_MS = [500, 1000, 2000, 4000, 8000, 15000];
/** An answer that ended a question is stored already; without it nothing may come for long. */
const ANSWER_MS = 10_000;
/** All events of a long task may be read to find one question. */
const LOOK_UP_MS = 30_000;

export type StreamState =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "waiting"; until: number; attempt: number }
  | { is: "ended" }
  | { is: "failed"; reason: string };

/** One followed task: all its events from the first one, each once, over every loss of the connection. */
export class TaskFollower {
  #last = 0;
  #stopped = new AbortController();
  #now: AbortController | undefined;
  #wake: (() => void) | undefined;
  #isRenewed = false;
  #isPaused = false;

  constructor(
    private readonly taskId: string,
    private readonly onEvents: (events: TaskEvent[]) => void,
    private readonly onState: (state: StreamState) => void,
  ) {
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    this.#now?.abort();
    this.#wake?.();
  }

  /** Try again now, e.g. because the page is shown again or the network is back. */
  retry(): void {
    this.#isPaused = false;
    this.#wake?.();
  }

  /** Give the connection up until `renew`: a page that is not seen needs none. */
  pause(): void {
    this.#isPaused = true;
    this.#now?.abort();
  }

  /** Connect anew from the last event: after a sleep the connection may be dead although nothing says so. */
  renew(): void {
    this.#isRenewed = true;
    this.#isPaused = false;
    this.#now?.abort();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    let attempt = 0;
    while (!this.#stopped.signal.aborted) {
      this.onState({ is: "connecting" });
      this.#isRenewed = false;
      try {
        const before = this.#last;
        if (await this.#follow()) {
          this.onState({ is: "ended" });
          return;
        }
        if (this.#last > before) attempt = 0;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          this.onState({ is: "failed", reason: problemOf(error) });
          return;
        }
      }
      if (this.#stopped.signal.aborted) return;
      if (this.#isPaused) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
        continue;
      }
      if (this.#isRenewed) {
        this.#isRenewed = false;
        attempt = 0;
        continue;
      }
      const pause = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)] ?? 15000;
      attempt += 1;
      this.onState({ is: "waiting", until: Date.now() + pause, attempt });
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
  }

  /** Read the stream once; return whether the task has ended. */
  async #follow(): Promise<boolean> {
    const now = (this.#now = new AbortController());
    try {
      const response = await subscribe(this.taskId, this.#last, now.signal);
      this.onState({ is: "live" });
      let ended = false;
      for await (const frames of readFrames(response, now)) {
        const found: TaskEvent[] = [];
        for (const { id, data } of frames) {
          if (id !== undefined && id <= this.#last && id !== 0) continue;
          const events = eventsOf(JSON.parse(data));
          for (const event of events) found.push(id === undefined ? event : { ...event, seq: id });
          if (id !== undefined) this.#last = id;
          const last = events.at(-1);
          if (last?.kind === "state") ended = ENDED.has(last.state);
        }
        if (found.length) this.onEvents(found);
      }
      return ended;
    } finally {
      now.abort();
    }
  }
}

async function subscribe(taskId: string, after: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch(`${SERVER}tasks/${encodeURIComponent(taskId)}:subscribe`, {
    headers: headers({
      Accept: "text/event-stream",
      "Last-Event-ID": String(after),
      "X-Isthmus-Prompts": "1",
    }),
    cache: "no-store",
    credentials: "omit",
    signal,
  });
  if (!response.ok || response.body === null)
    throw refusalIn(response.status, response.statusText, await response.json().catch(() => ({})));
  return response.body;
}

/** Return the events of one number again, whose contents the page did not keep. Throws an ApiError. */
export async function eventsAgain(taskId: string, seq: number): Promise<TaskEvent[]> {
  for await (const { id, events } of eventsFor(LOOK_UP_MS, taskId, seq - 1)) if (id === seq) return events;
  return [];
}

export interface Answered {
  by: string;
  optionId: string;
}

/** Return who answered a question that waited at the event `seq`, and how; undefined if that is not known, e.g. of a task that was stopped. */
export async function answererOf(taskId: string, seq: number, callId: string): Promise<Answered | undefined> {
  // The list of the inbox is whole without it.
  return (await answeredQuestion(taskId, seq, callId))?.answer;
}

/** Return a question that waited at the event `seq` and does no more; undefined if it could not be looked up soon. */
export async function answeredQuestion(taskId: string, seq: number, callId: string): Promise<PastQuestion | undefined> {
  return pastQuestion(taskId, callId, seq, ANSWER_MS).catch(() => undefined);
}

/** What the events of a task say of one of its questions. */
export interface PastQuestion {
  /** The call as it was asked. */
  call?: ToolCall;
  /** The first answer to it. */
  answer?: TaskEvent & { kind: "answered" };
}

/** Look a question up in the events of its task after `seq`, for at most so many milliseconds. Throws an ApiError. */
export async function pastQuestion(taskId: string, callId: string, seq = 0, most = LOOK_UP_MS): Promise<PastQuestion> {
  const found: PastQuestion = {};
  for await (const { events } of eventsFor(most, taskId, seq))
    for (const event of events) {
      const calls = event.kind === "call" ? [event.call] : event.kind === "state" ? event.pending : [];
      const call = calls.find((one) => one.tool_call_id === callId && one.confirmation_request);
      if (call) found.call = call;
      if (event.kind === "answered" && event.callId === callId) return { ...found, answer: event };
      if (event.kind === "state" && ENDED.has(event.state)) return found;
    }
  return found;
}

/** Yield the events of a task after `seq` with their number, for at most so many milliseconds. Throws an ApiError. */
async function* eventsFor(
  most: number,
  taskId: string,
  seq: number,
): AsyncGenerator<{ id: number | undefined; events: TaskEvent[] }> {
  const now = new AbortController();
  const deadline = setTimeout(() => now.abort(), most);
  try {
    for await (const frames of readFrames(await subscribe(taskId, seq, now.signal), now))
      for (const { id, data } of frames) yield { id, events: eventsOf(JSON.parse(data)) };
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(0, "");
  } finally {
    clearTimeout(deadline);
    now.abort();
  }
}
