// The results of calls that are over, up to a number of characters; the oldest ones are left to the server.

import type { CallResult } from "./call-facts.ts";
import type { LineCounts } from "../diff/diffs.ts";
import type { GivenAnswer } from "./given-answer.ts";
import type { FileDiff, ToolCall } from "../server/protocol.ts";

/** A picture of a message or a result: its task, its event, and its number in it. */
export interface Picture {
  task: string;
  event: number;
  number: number;
}

export interface CallItem {
  is: "call";
  key: string;
  call: ToolCall;
  /** Whether it is the first, and the last, of the calls between two texts: they are drawn as one card. */
  isFirst: boolean;
  isLast: boolean;
  /** The first answer to its question. */
  answer?: GivenAnswer;
  since: number;
  until: number;
  /** Figures of its result, also when the result itself is not kept. */
  result?: CallResult;
  pictures?: Picture[];
  /** Lines of its whole output until now. */
  lines: number;
  /** Lines of its diff, also when the diff itself is not kept. */
  counts?: LineCounts;
  /** Checkpoint of its file from before the edit. */
  checkpoint?: string;
  /** Number of the event with its result, if that is not kept: it is fetched again when it is opened. */
  fetched: number;
}

/** Characters of all results of one task that are kept. */
const CHARACTERS = 6_000_000;
/** Characters of one output: more of it is never shown. */
const OUTPUT = 80_000;
/** Characters of one parameter of a call that is over. */
const PARAMETER = 2_000;
/** Results of at most this many characters are always kept. */
const SMALL = 400;

export class KeptCalls {
  #kept: { item: CallItem; size: number; seq: number }[] = [];
  #first = 0;
  #total = 0;

  constructor(private readonly characters = CHARACTERS) {}

  /** Keep the result of a call that is over, which event `seq` has brought; forget the oldest ones beyond the limit. */
  keep(item: CallItem, seq: number): void {
    item.call = trimmed(item.call);
    const size = sizeOf(item.call);
    if (size <= SMALL || seq === 0) return;
    this.#kept.push({ item, size, seq });
    this.#total += size;
    while (this.#total > this.characters && this.#first < this.#kept.length - 1) {
      const oldest = this.#kept[this.#first];
      this.#first += 1;
      if (!oldest) continue;
      this.#total -= oldest.size;
      oldest.item.fetched = oldest.seq;
      oldest.item.call = withoutResult(oldest.item.call);
    }
    if (this.#first > 1000) {
      this.#kept.splice(0, this.#first);
      this.#first = 0;
    }
  }
}

/** Return the end of a text, as a copy: a part of a string keeps the whole string in memory. */
export function shortened(text: string, limit: number): string {
  return text.length <= limit ? text : (JSON.parse(JSON.stringify(text.slice(-limit))) as string);
}

function trimmed(call: ToolCall): ToolCall {
  const { live_content: _, input_parameters, output, error, ...rest } = call;
  const kept: ToolCall = rest;
  if (input_parameters) {
    kept.input_parameters = Object.fromEntries(
      Object.entries(input_parameters)
        .filter(([name]) => name !== "todos")
        .map(([name, value]) => [
          name,
          typeof value === "string"
            ? beginning(value)
            : typeof value === "object" && value !== null
              ? undefined
              : value,
        ]),
    );
  }
  if (output) {
    kept.output = { ...output, ...(output.text ? { text: shortened(output.text, OUTPUT) } : {}) };
    if (output.structured_data !== undefined) {
      delete kept.output.structured_data;
      kept.output.text ||= shortened(JSON.stringify(output.structured_data, null, 2), OUTPUT);
    }
  }
  if (error) kept.error = { ...error, message: shortened(error.message, OUTPUT) };
  // The diff of the question and that of the result are the same file.
  if (output?.diff && kept.confirmation_request?.file_edit_details) {
    const { file_edit_details: __, ...request } = kept.confirmation_request;
    kept.confirmation_request = request;
  }
  return kept;
}

function beginning(text: string): string {
  return text.length <= PARAMETER ? text : (JSON.parse(JSON.stringify(text.slice(0, PARAMETER))) as string);
}

function sizeOf(call: ToolCall): number {
  return (
    (call.output?.text?.length ?? 0) +
    (call.error?.message.length ?? 0) +
    sizeOfDiff(call.output?.diff) +
    sizeOfDiff(call.confirmation_request?.file_edit_details)
  );
}

function sizeOfDiff(diff: FileDiff | undefined): number {
  return diff ? diff.new_content.length + (diff.old_content?.length ?? 0) : 0;
}

/** Return a call without the texts of its result; that it has a diff, and of which file, stays. */
function withoutResult(call: ToolCall): ToolCall {
  const bare = (diff: FileDiff): FileDiff => ({
    ...diff,
    new_content: "",
    ...(diff.old_content === undefined ? {} : { old_content: "" }),
  });
  const { output, error, confirmation_request: request, ...rest } = call;
  return {
    ...rest,
    ...(output ? { output: output.diff ? { diff: bare(output.diff) } : {} } : {}),
    ...(error ? { error: { ...error, message: error.message.slice(0, 200) } } : {}),
    ...(request?.file_edit_details
      ? { confirmation_request: { options: [], file_edit_details: bare(request.file_edit_details) } }
      : {}),
  };
}
