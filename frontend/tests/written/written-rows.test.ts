import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lineHunks, splitLines } from "../../src/diff/line-diff.ts";
import { type Part, partsOf } from "../../src/written/written-rows.ts";
import type { WrittenHunk } from "../../src/written/written.ts";
import { diff, hunk } from "../support/written.ts";
import { anyEditorEdit } from "../support/texts.ts";

const NONE = new Set<number>();

/** Return what a companion tells of a change; hunks whose number is even went back, if some did. */
function writtenOf(before: string, after: string, isBack: (number: number) => boolean) {
  const [old, now] = [splitLines(before), splitLines(after)];
  let text = "";
  let at = 0;
  let lines = 0;
  const hunks = lineHunks(old, now).map(({ oldFrom, oldTo, newFrom, newTo }, index): WrittenHunk => {
    const alike = old.slice(at, oldFrom);
    const [old_lines, new_lines] = [old.slice(oldFrom, oldTo), now.slice(newFrom, newTo)];
    const state = isBack(index) ? "undone" : "written";
    const kept = state === "undone" ? old_lines : new_lines;
    const new_start = lines + alike.length;
    text += [...alike, ...kept].join("");
    lines = new_start + kept.length;
    at = oldTo;
    return hunk({ id: String(index), number: index + 1, state, old_start: oldFrom, old_lines, new_start, new_lines });
  });
  return diff({ old: before, new: text + old.slice(at).join(""), hunks });
}

const bare = (text: string): string[] => splitLines(text).map((line) => line.replace(/\n$/, ""));

/** Return the numbers and texts of one side, with the numbers that a fold stands for. */
function side(parts: Part[], which: "before" | "after"): { numbers: number[]; texts: Map<number, string> } {
  const numbers: number[] = [];
  const texts = new Map<number, string>();
  for (const part of parts) {
    if (part.kind === "fold") {
      for (let count = 0; count < part.count; count += 1) numbers.push((numbers.at(-1) ?? 0) + 1);
      continue;
    }
    for (const line of part[which]) {
      numbers.push(line.number);
      texts.set(line.number, line.text);
    }
  }
  return { numbers, texts };
}

describe("both sides of a file that was written", () => {
  it("have each line once, in order, with its text, whatever went back", () => {
    fc.assert(
      fc.property(anyEditorEdit, fc.boolean(), fc.boolean(), ([before, after], back, all) => {
        const file = writtenOf(before, after, (number) => back && (all || number % 2 === 0));
        const parts = partsOf(file, () => undefined, NONE);
        for (const [which, text] of [
          ["before", file.old ?? ""],
          ["after", file.new ?? ""],
        ] as const) {
          const { numbers, texts } = side(parts, which);
          const lines = bare(text);
          expect(numbers).toEqual(lines.map((_, at) => at + 1));
          for (const [number, shown] of texts) expect(shown).toBe(lines[number - 1]);
        }
      }),
    );
  });

  it("fold what is alike, and open it by its first line", () => {
    const lines = Array.from({ length: 30 }, (_, at) => `${at}\n`);
    const file = writtenOf(lines.join(""), [...lines.slice(0, 15), "new\n", ...lines.slice(15)].join(""), () => false);
    const parts = partsOf(file, () => undefined, NONE);
    expect(parts.map((part) => (part.kind === "fold" ? part.count : part.kind))).toEqual([
      12,
      "alike",
      "hunk",
      "alike",
      12,
    ]);
    const open = partsOf(file, () => undefined, new Set([0]));
    expect(open.map((part) => part.kind)).toEqual(["alike", "hunk", "alike", "fold"]);
  });

  it("show a hunk that is to go back as it was", () => {
    const file = writtenOf("a\nb\n", "a\nB\n", () => false);
    const find = (mark?: "undo" | "keep") => partsOf(file, () => mark, NONE).find((part) => part.kind === "hunk");
    expect(find("keep")).toMatchObject({ isBack: false, before: [{ text: "b" }], after: [{ text: "B" }] });
    expect(find("undo")).toMatchObject({
      isBack: true,
      before: [{ text: "b" }],
      after: [{ text: "b", source: "old" }],
    });
  });

  it("show line ends where they are the change", () => {
    const file = writtenOf("a\r\n", "a\n", () => false);
    expect(partsOf(file, () => undefined, NONE)).toMatchObject([{ before: [{ text: "a\r" }], after: [{ text: "a" }] }]);
    const [alike] = partsOf(
      writtenOf("a\r\n", "b\r\n", () => false),
      () => undefined,
      NONE,
    );
    expect(alike).toMatchObject({ before: [{ text: "a" }], lacksNewline: false });
    expect(
      partsOf(
        writtenOf("a\n", "a", () => false),
        () => undefined,
        NONE,
      ),
    ).toMatchObject([{ lacksNewline: true }]);
  });

  it("mark the words that differ, as the editor of diffs does, also where a hunk has more lines than before", () => {
    const file = writtenOf(
      "rows = execute(ALL, zone, 1)\n",
      "import time\nrows = execute(ONE, zone, 2)\n",
      () => false,
    );
    const marked = (which: "before" | "after") =>
      partsOf(file, () => undefined, NONE).flatMap((part) =>
        part.kind === "hunk"
          ? part[which].map(({ text, marks }) => marks.map(([from, to]) => text.slice(from, to)))
          : [],
      );
    expect(marked("before")).toEqual([["ALL", "1"]]);
    expect(marked("after")).toEqual([[], ["ONE", "2"]]);
  });

  it("mark one part of each line of a hunk that is very long", () => {
    const lines = (word: string) => `${"x".repeat(200)} ${word} a ${word}\n`.repeat(400);
    const [part] = partsOf(
      writtenOf(lines("b"), lines("c"), () => false),
      () => undefined,
      NONE,
    );
    expect(part?.kind === "hunk" && part.before[0]?.marks).toEqual([[201, 206]]);
  });
});
