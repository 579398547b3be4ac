// Files of a companion whose editor is this page (docs/reference/workbench.md): found, shown, selected in, mentioned.

import { api } from "./session.ts";

/** Line and character of the start and of the end, 0-based, in UTF-16 units. */
export type Selection = [number, number, number, number];

export interface FoundFile {
  path: string;
  /** Path below the workspace folder. */
  name: string;
}

/** A file as the companion read it. `text` is null if it is not shown; `why` says why. */
export interface ShownFile {
  path: string;
  text: string | null;
  why: "" | "binary" | "large";
  size: number;
  state: string;
  selection: Selection | null;
}

const at = (companion: string): string => `files/${encodeURIComponent(companion)}`;

export function findFiles(companion: string, words: string): Promise<{ files: FoundFile[]; more: boolean }> {
  return api("GET", `${at(companion)}?${new URLSearchParams({ words })}`);
}

/** Open a file in the companion, and return it; with `focus` it becomes the active one. */
export function viewFile(companion: string, path: string, focus: boolean): Promise<ShownFile> {
  return api("POST", at(companion), { do: "view", path, focus });
}

/** Select text of the file as it was in `state`. Throws an ApiError of status 409 if it was written since. */
export function selectInFile(
  companion: string,
  path: string,
  state: string,
  selection: Selection,
): Promise<{ selection: Selection }> {
  return api("POST", at(companion), { do: "select", path, state, selection });
}

export function leaveFile(companion: string, path: string): Promise<unknown> {
  return api("POST", at(companion), { do: "leave", path });
}

/** Point the agents to a file, or to lines of it, 0-based. */
export function mentionFile(
  companion: string,
  path: string,
  lines: [number, number] | null,
): Promise<{ delivered: boolean; problem: string }> {
  return api("POST", at(companion), { do: "mention", path, lines });
}

/** Return the first and the last line of a selection, null without one; a line of which nothing is selected does not count. */
export function linesOf([line, character, endLine, endCharacter]: Selection): [number, number] | null {
  if (line === endLine && character === endCharacter) return null;
  return [line, endCharacter === 0 && endLine > line ? endLine - 1 : endLine];
}
