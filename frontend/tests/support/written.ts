// What agents wrote, with what a test does not care about filled in.

import type { WrittenDiff, WrittenHunk } from "../../src/written/written.ts";

export function hunk(more: Partial<WrittenHunk> = {}): WrittenHunk {
  return {
    id: "1",
    number: 1,
    state: "written",
    later: [],
    undo: null,
    about: ["text"],
    old_start: 0,
    old_lines: [],
    new_start: 0,
    new_lines: [],
    ...more,
  };
}

export function diff(more: Partial<WrittenDiff> = {}): WrittenDiff {
  return {
    path: "a",
    kind: "changed",
    added: 0,
    removed: 0,
    written: 0,
    undone: 0,
    text: true,
    why: "",
    old_mode: null,
    new_mode: null,
    turn: 1,
    old: "",
    new: "",
    hunks: [],
    state: "",
    ...more,
  };
}
