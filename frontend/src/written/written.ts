// What agents wrote without a review, as a companion lists it (docs/reference/written-changes.md), and decisions about it.

import { api } from "../server/session.ts";

/** What waits at a companion, for the inbox. Times are Unix times in seconds. */
export interface WrittenEntry {
  files: number;
  turns: number;
  agents: string[];
  since: number;
  /** It is another one after each write and each decision. */
  count: number;
}

export interface WrittenFile {
  path: string;
  kind: "created" | "deleted" | "changed";
  renamed_from?: string;
  added: number;
  removed: number;
  /** Numbers of hunks in these states. */
  written: number;
  undone: number;
  text: boolean;
  /** Why it cannot be undone; empty if it can. */
  why: string;
  old_mode: number | null;
  new_mode: number | null;
}

export interface WrittenTurn {
  number: number;
  began_at: number;
  last_at: number;
  agents: string[];
  title: string;
  working: boolean;
  added: number;
  removed: number;
  files: WrittenFile[];
}

export interface Listing {
  since: number;
  turns: WrittenTurn[];
  files: WrittenFile[];
  undos: { number: number; at: number; files: string[] }[];
  state: string;
  following: boolean;
  partial: boolean;
  problem: string;
}

/** A run of changed lines. Lines have their line feeds, and starts count from 0. */
export interface WrittenHunk {
  id: string;
  number: number;
  state: "written" | "undone";
  later: number[];
  undo: number | null;
  about: ("text" | "content" | "mode" | "encoding" | "mark")[];
  old_start: number;
  old_lines: string[];
  new_start: number;
  new_lines: string[];
}

/** A file of one turn with its texts; null where there is none. */
export interface WrittenDiff extends WrittenFile {
  turn: number;
  old: string | null;
  new: string | null;
  hunks: WrittenHunk[];
  state: string;
}

export interface Selection {
  path?: string;
  turn?: number;
  hunks?: string[];
  state?: string;
}

export function loadListing(companion: string): Promise<Listing> {
  return api<Listing>("GET", place(companion));
}

export function loadDiff(companion: string, path: string, turn: number): Promise<WrittenDiff> {
  return api<WrittenDiff>("GET", `${place(companion)}?${new URLSearchParams({ path, turn: String(turn) })}`);
}

/** Keep what is selected. Throws an ApiError, with `changed` in its body if the state is not that one any more. */
export function keep(companion: string, selection: Selection): Promise<{ state: string; problems?: string[] }> {
  return api("POST", place(companion), { do: "keep", ...selection });
}

/** Write what was there before; `problems` say which files were not written. It throws as `keep` does. */
export function undo(companion: string, selection: Selection): Promise<{ state: string; problems: string[] }> {
  return api("POST", place(companion), { do: "undo", ...selection });
}

export function takeBack(companion: string, number: number): Promise<{ state: string; problems: string[] }> {
  return api("POST", place(companion), { do: "take_back", undo: number });
}

function place(companion: string): string {
  return `written/${encodeURIComponent(companion)}`;
}

/** Return a text that stands for the writes of a list: another one after each write, the same after a decision. */
export function writesOf({ turns }: Listing): string {
  return JSON.stringify(turns.map(({ number, last_at }) => [number, last_at]));
}
