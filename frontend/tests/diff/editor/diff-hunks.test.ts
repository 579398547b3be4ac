import { history, undo } from "@codemirror/commands";
import { EditorState, Text, type TransactionSpec } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changesBetween,
  choiceOf,
  decideHunk,
  hunkField,
  hunkUnits,
  hunksOf,
  sameLine,
} from "../../../src/diff/editor/diff-hunks.ts";
import { comparable } from "../../../src/diff/line-diff.ts";
import { anyEditorEdit as anyEdit } from "../../support/texts.ts";

const textOf = (text: string): Text => Text.of(text.split("\n"));

/** An editor without a document on the screen. */
function editor(before: string, after: string) {
  const extensions = [history(), hunkUnits(hunksOf(textOf(before), textOf(after)))];
  let state = EditorState.create({ doc: textOf(after), extensions });
  const dispatch = (spec: TransactionSpec): void => {
    state = state.update(spec).state;
  };
  const view = {
    get state() {
      return state;
    },
    dispatch,
  };
  return {
    view: view as unknown as EditorView,
    dispatch,
    undo: () => undo({ state, dispatch: (transaction) => (state = transaction.state) }),
    get text() {
      return state.doc.toString();
    },
    get hunks() {
      return state.field(hunkField);
    },
  };
}

describe("the hunks of a proposal", () => {
  it("give the old text if all of them are kept as they were, and the new one if they are taken again", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const one = editor(before, after);
        fc.pre(one.hunks.length >= 2);
        for (const [index] of one.hunks.entries()) expect(decideHunk(one.view, index, "kept")).toBe(true);
        expect(one.text).toBe(comparable(before, after));
        for (const [index] of [...one.hunks.entries()].reverse()) decideHunk(one.view, index, "taken");
        expect(one.text).toBe(after);
      }),
    );
  });

  it("keep their places when one of them is decided", () => {
    fc.assert(
      fc.property(anyEdit, fc.nat(), ([before, after], number) => {
        const one = editor(before, after);
        fc.pre(one.hunks.length >= 2);
        decideHunk(one.view, number % one.hunks.length, "kept");
        const lines = one.text.split("\n");
        for (const hunk of one.hunks) {
          const wanted = hunk.isKept ? hunk.oldLines : hunk.newLines;
          if (one.text) expect(lines.slice(hunk.start, hunk.start + hunk.count)).toEqual(wanted);
        }
      }),
    );
  });

  it("follow an edit beside them, take one within them, and are a unit no more after one over their border", () => {
    const one = editor("a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\n");
    one.dispatch({ changes: { from: 0, insert: "first\n" } });
    expect(one.hunks.map((hunk) => hunk.start)).toEqual([2, 4]);
    one.dispatch({ changes: { from: one.text.indexOf("B"), insert: "more\n" } });
    expect(one.hunks.map(({ start, count }) => [start, count])).toEqual([
      [2, 2],
      [5, 1],
    ]);
    one.dispatch({ changes: { from: one.text.indexOf("c"), to: one.text.indexOf("D") + 1, insert: "x" } });
    expect(one.hunks.map((hunk) => hunk.isLost)).toEqual([false, true]);
    expect(decideHunk(one.view, 1, "kept")).toBe(false);
  });

  it("are undecided again when a decision is taken back by undo", () => {
    const one = editor("a\nb\nc\n", "A\nb\nC\n");
    decideHunk(one.view, 0, "kept");
    expect(one.hunks[0]?.isKept).toBe(true);
    one.undo();
    expect(one.hunks[0]?.isKept).toBe(false);
    expect(one.text).toBe("A\nb\nC\n");
  });

  it("are open, taken, or kept, and open again when that is taken back", () => {
    const one = editor("a\nb\nc\n", "A\nb\nC\n");
    const choices = () => one.hunks.map(choiceOf);
    expect(decideHunk(one.view, 1, "taken")).toBe(true);
    expect(decideHunk(one.view, 1, "taken")).toBe(false);
    decideHunk(one.view, 0, "kept");
    expect(choices()).toEqual(["kept", "taken"]);
    for (const index of [0, 1]) decideHunk(one.view, index, "open");
    expect(choices()).toEqual(["open", "open"]);
    expect(one.text).toBe("A\nb\nC\n");
  });

  it("are answered with the whole change if there is only one", () => {
    expect(decideHunk(editor("a\n", "b\n").view, 0, "kept")).toBe(false);
  });
});

describe("changes of an editor", () => {
  it("make one text from another", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        fc.pre(comparable(before, after) === before);
        const state = EditorState.create({ doc: textOf(before) });
        const changes = changesBetween(textOf(before), textOf(after));
        expect(state.update({ changes }).state.doc.toString()).toBe(after);
      }),
    );
  });

  it("find the line that stands for one of the other text", () => {
    const [from, to] = [textOf("a\nb\nc\n"), textOf("new\na\nB\nc\n")];
    expect([1, 2, 3].map((line) => sameLine(from, to, line))).toEqual([2, 3, 4]);
    fc.assert(
      fc.property(anyEdit, fc.nat(), ([before, after], number) => {
        const [one, other] = [textOf(before), textOf(after)];
        const line = sameLine(one, other, (number % one.lines) + 1);
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(other.lines);
      }),
    );
  });
});
