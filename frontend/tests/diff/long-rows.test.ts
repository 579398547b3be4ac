import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lineHunks, splitLines } from "../../src/diff/line-diff.ts";
import { type Row, changeRows, changedPart, textRows } from "../../src/diff/long-rows.ts";
import { anyEdit } from "../support/texts.ts";

const WORDS = { alikeCharacters: (count: number) => `${count} alike`, noNewline: "no newline" };

const rowsOf = (before: string, after: string) =>
  changeRows(before, after, lineHunks(splitLines(before), splitLines(after)), WORDS);

/** Return the lines of one kind, which may go on over several rows. */
function linesOf(rows: readonly Row[], kind: Row["kind"]): string[] {
  const lines: string[] = [];
  for (const row of rows) {
    if (row.kind !== kind) continue;
    if (row.line) lines.push(row.text);
    else lines[lines.length - 1] += row.text;
  }
  return lines;
}

const bare = (line: string): string => line.replace(/\n$/, "");

describe("the rows of a change", () => {
  it("show each removed and each added line once, in order", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const [old, now] = [splitLines(before), splitLines(after)];
        const hunks = lineHunks(old, now);
        const rows = changeRows(before, after, hunks, WORDS).hunks.flatMap((hunk) => hunk.rows);
        const removed = hunks.flatMap(({ oldFrom, oldTo }) => old.slice(oldFrom, oldTo));
        const added = hunks.flatMap(({ newFrom, newTo }) => now.slice(newFrom, newTo));
        expect(linesOf(rows, "removed")).toEqual(removed.map(bare));
        expect(linesOf(rows, "added")).toEqual(added.map(bare));
      }),
    );
  });

  it("account for each line of the new text: shown, or counted as alike", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const { hunks, alike } = rowsOf(before, after);
        const shown = hunks.flatMap((hunk) => hunk.rows).filter((row) => row.kind === "same" || row.kind === "added");
        const hidden = hunks.reduce((sum, hunk) => sum + hunk.alike, alike);
        expect(shown.length + hidden).toBe(splitLines(after).length);
      }),
    );
  });

  it("have the numbers of both texts where a line is the same", () => {
    fc.assert(
      fc.property(anyEdit, ([before, after]) => {
        const [old, now] = [splitLines(before), splitLines(after)];
        for (const row of rowsOf(before, after).hunks.flatMap((hunk) => hunk.rows))
          if (row.kind === "same" && row.line) expect(old[(row.old ?? 0) - 1]).toBe(now[row.line - 1]);
      }),
    );
  });

  it("say that a text has no line feed at its end", () => {
    const [hunk] = rowsOf("a\n", "a").hunks;
    expect(hunk?.rows.map(({ kind, text }) => [kind, text])).toEqual([
      ["removed", "a"],
      ["added", "a"],
      ["note", "no newline"],
    ]);
  });

  it("show what differs in a long line, and say how much is alike", () => {
    const [hunk] = rowsOf(`${"a".repeat(5000)}x\n`, `${"a".repeat(5000)}y\n`).hunks;
    expect(hunk?.rows.map(({ kind, text }) => (kind === "note" ? text : text.at(-1)))).toEqual([
      "4800 alike",
      "x",
      "4800 alike",
      "y",
    ]);
  });
});

describe("the rows of a text", () => {
  it("are the whole text, and cut no word", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("word ", "x".repeat(90), " ", "\u0430bc "), { maxLength: 400 }),
        (pieces) => {
          const text = pieces.join("");
          const rows = textRows(text, WORDS).flatMap((hunk) => hunk.rows);
          expect(rows.map((row) => row.text).join("")).toBe(text);
          for (const row of rows) expect(row.text.length).toBeLessThanOrEqual(2000);
        },
      ),
    );
    const rows = textRows(`${"x ".repeat(999)}word word`, WORDS).flatMap((hunk) => hunk.rows);
    expect(rows.map((row) => row.text.split(" ").at(-1))).toEqual(["", "word"]);
  });
});

it("the changed part of a line is between what both lines have in common", () => {
  expect(changedPart("one two three", "one 2 three")).toEqual([4, 7]);
  fc.assert(
    fc.property(fc.string(), fc.string(), (text, other) => {
      const [from, to] = changedPart(text, other);
      const [otherFrom, otherTo] = changedPart(other, text);
      expect(text.slice(0, from) + other.slice(otherFrom, otherTo) + text.slice(to)).toBe(other);
    }),
  );
});
