// The words of answers. Those of our own agent are the page's, in its language; other agents' keep their names.

import type { ConfirmationOption } from "../server/protocol.ts";
import { exactLine } from "../text/safe.ts";
import { COMMA } from "../words.ts";
import { type QuestionWord, ask } from "./words.ts";

export interface OptionWords {
  words: string;
  /** How far the answer reaches, if it is more than one call. */
  limit: string;
}

/** The answers of our agent by their ids and names: an id alone may mean something else in another question. */
export const NAMED: Readonly<Record<string, Readonly<Record<string, QuestionWord>>>> = {
  proceed_once: {
    "Allow once": "allowOnce",
    "Allow these changes": "allowChanges",
    "Go on": "goOn",
    Send: "send",
  },
  accept: {
    Send: "send",
    "Open the page": "openThePage",
    "I go there": "iGoThere",
    "I am done": "iAmDone",
  },
  decline: { Decline: "decline" },
  cancel: {
    Reject: "reject",
    "None of these": "noneOfThese",
    "No answer": "noAnswer",
    Dismiss: "dismiss",
    Stop: "stop",
    "Give up": "giveUp",
  },
  proceed_always_command: { "Always allow exactly this command in this folder": "allowCommand" },
  proceed_always_file: { "Always allow this file": "allowFile" },
  proceed_always_folder: { "Always allow this folder": "allowFolder" },
};

/** The lasting answers that name what they cover. */
const COVERING: Readonly<Record<string, QuestionWord>> = {
  proceed_always_tool: "allowTool",
  proceed_always_server: "allowServer",
  proceed_always_and_save: "allowKept",
  proceed_always_prefix: "allowPrefix",
  proceed_always_sampling: "allowTool",
};

const LIMITS: Readonly<Record<string, QuestionWord>> = {
  proceed_always_tool: "inSession",
  proceed_always_sampling: "inSession",
  proceed_always_server: "inSession",
  proceed_always_and_save: "untilChanged",
  proceed_always_prefix: "inFolder",
  proceed_always_command: "inFolder",
  proceed_always_file: "inSession",
  proceed_always_folder: "inSession",
};

/** Return the words of an answer, and how far it reaches. */
export function wordsOf(option: ConfirmationOption): OptionWords {
  const { id, name, covers } = option;
  const named = Object.hasOwn(NAMED, id) ? NAMED[id] : undefined;
  const word = named && Object.hasOwn(named, name) ? named[name] : undefined;
  const covering = covers && Object.hasOwn(COVERING, id) ? COVERING[id] : undefined;
  const limit = (word ?? covering) && Object.hasOwn(LIMITS, id) ? LIMITS[id] : undefined;
  const words = word ? ask(word) : covering && covers ? ask(covering, exactLine(covers, 60)) : exactLine(name);
  return { words, limit: limit ? ask(limit) : "" };
}

/** Return the words of an answer with how far it reaches, for a sentence. */
export function fullWordsOf(option: ConfirmationOption): string {
  const { words, limit } = wordsOf(option);
  return limit ? words + COMMA + limit : words;
}
