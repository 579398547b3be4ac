// All keys of the page, by the place where they mean something: for the list of keys, the status line and the palette.

import type { Word } from "../words.ts";
import { f, type FrameWord } from "./words.ts";

/** Where keys mean something. */
export type KeyPlace =
  | "everywhere"
  | "inbox"
  | "question"
  | "edit"
  | "files of one"
  | "session"
  | "changes"
  | "history"
  | "files"
  | "written";

export interface KeyRow {
  /** Its keys, as events name them; those of a sequence are joined by a blank. */
  keys: readonly string[];
  /** How they are shown, if not as they are. */
  shown?: string;
  word: Word;
  at: KeyPlace;
  /** What the status line says of them; without it they are in the list alone. */
  short?: FrameWord;
  /** Whether a press is an answer, or stops a turn, and so is never chosen from a list. */
  isAnswer?: true;
  needs?: "tasks" | "files" | "written";
}

export const KEYS: readonly KeyRow[] = [
  { keys: ["g i"], word: "keyInbox", at: "everywhere" },
  { keys: ["g h"], word: "keyHistory", at: "everywhere", needs: "tasks" },
  { keys: ["g s"], word: "keyTools", at: "everywhere", needs: "tasks" },
  { keys: ["g f"], word: "keyFiles", at: "everywhere", needs: "files" },
  { keys: ["g w"], word: "keyWritten", at: "everywhere", needs: "written" },
  { keys: ["c"], word: "keyNew", at: "everywhere", needs: "tasks" },
  { keys: ["j", "k"], word: "keyNext", at: "inbox", short: "move" },
  { keys: ["."], word: "keyShowNew", at: "inbox" },
  { keys: ["/"], word: "keySearch", at: "inbox" },
  { keys: ["A"], shown: "\u21e7A", word: "keyAll", at: "inbox" },
  { keys: ["y"], word: "keyAllow", at: "question", short: "allow", isAnswer: true },
  { keys: ["1-9"], shown: "1\u20139", word: "keyOptions", at: "question", isAnswer: true },
  { keys: ["n"], word: "keyTell", at: "question", short: "reject", isAnswer: true },
  { keys: ["N"], shown: "\u21e7N", word: "keyReject", at: "question", isAnswer: true },
  { keys: ["Send"], word: "keySend", at: "question", isAnswer: true },
  { keys: [" "], shown: "space", word: "keyUnseen", at: "question" },
  { keys: ["e"], word: "keyEdit", at: "edit", short: "edit" },
  { keys: ["v"], word: "keyView", at: "edit" },
  { keys: ["[", "]"], word: "keyHunk", at: "edit" },
  { keys: ["a", "x", "u"], word: "keyHunks", at: "edit", isAnswer: true },
  { keys: ["m", "M"], word: "keyComment", at: "edit" },
  { keys: ["[", "]"], word: "keyFile", at: "files of one" },
  { keys: ["."], word: "keyShowNew", at: "session", needs: "tasks" },
  { keys: ["i"], word: "keyPrompt", at: "session", short: "prompt", needs: "tasks" },
  { keys: ["l"], word: "keyModel", at: "session", short: "model", needs: "tasks" },
  { keys: ["d"], word: "keyDiff", at: "session", short: "changes", needs: "tasks" },
  { keys: ["z"], word: "keyRewind", at: "session", needs: "tasks" },
  { keys: ["b"], word: "keyBranch", at: "session", needs: "tasks" },
  { keys: ["/"], word: "keyFind", at: "session", needs: "tasks" },
  { keys: ["F2"], word: "keyRename", at: "session", needs: "tasks" },
  { keys: ["j", "k"], word: "keyMessages", at: "session", needs: "tasks" },
  { keys: ["r"], word: "keyRetry", at: "session", needs: "tasks" },
  { keys: ["Escape Escape"], shown: "esc esc", word: "keyStop", at: "session", isAnswer: true, needs: "tasks" },
  { keys: ["r"], word: "keyCompare", at: "changes", short: "again", needs: "tasks" },
  { keys: ["j", "k"], word: "keyFiles2", at: "changes", short: "move", needs: "tasks" },
  { keys: ["v"], word: "keyView", at: "changes", short: "view", needs: "tasks" },
  { keys: ["/"], word: "keySearchHistory", at: "history", short: "search", needs: "tasks" },
  { keys: ["j", "k"], word: "keySessions", at: "history", short: "move", needs: "tasks" },
  { keys: ["/"], word: "keySearch", at: "files", short: "search", needs: "files" },
  { keys: ["j", "k"], word: "keyFiles2", at: "files", short: "move", needs: "files" },
  { keys: ["m"], word: "keyMention", at: "files", short: "mention", needs: "files" },
  { keys: ["x"], word: "keyLeave", at: "files", short: "leave", needs: "files" },
  { keys: ["j", "k"], word: "keyWrittenMove", at: "written", short: "hunk", needs: "written" },
  { keys: ["a", "x", "u"], word: "keyWrittenHunks", at: "written", isAnswer: true, needs: "written" },
  {
    keys: ["J", "K"],
    shown: "\u21e7J \u21e7K",
    word: "keyWrittenTurns",
    at: "written",
    short: "turn",
    needs: "written",
  },
  { keys: ["A"], shown: "\u21e7A", word: "keyWrittenKeep", at: "written", isAnswer: true, needs: "written" },
  { keys: ["Send"], word: "keyWrittenSend", at: "written", isAnswer: true, needs: "written" },
];

/** What the page has, and so which keys mean something. */
export interface Has {
  tasks: boolean;
  files: boolean;
  written: boolean;
}

export function keysWith(has: Has): KeyRow[] {
  return KEYS.filter(({ needs }) => needs === undefined || has[needs]);
}

/** Return how keys are shown; `send` is how those are named that send a form. */
export function shownKeys({ keys, shown }: KeyRow, send: string): string {
  return shown ?? keys.map((key) => (key === "Send" ? send : key)).join(" ");
}

/** Return the places whose keys mean something on a page. */
export function placesOn(page: string, hasQuestion: boolean): KeyPlace[] {
  const asked: KeyPlace[] = hasQuestion ? ["question", "edit"] : [];
  switch (page) {
    case "inbox":
      return hasQuestion ? ["inbox", ...asked] : [];
    case "task":
      return [...asked, "session"];
    case "diff":
      return ["changes"];
    case "history":
    case "files":
    case "written":
      return [page];
    default:
      return [];
  }
}

/** Return what the status line says of the keys at these places. */
export function keysLine(places: readonly KeyPlace[], has: Has): string {
  return places
    .flatMap((place) => keysWith(has).filter((row) => row.at === place))
    .flatMap((row) => (row.short ? [`${shownKeys(row, "")} ${f(row.short)}`] : []))
    .join(" \u00b7 ");
}
