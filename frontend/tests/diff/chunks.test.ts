import { Text } from "@codemirror/state";
import fc from "fast-check";
import { expect, it } from "vitest";
import { chunkAt, differenceBetween, linesOf, marksOf, oldLineOf } from "../../src/diff/chunks.ts";
import { MARGIN, foldsOf } from "../../src/diff/editor/folds.ts";
import { anyEditorEdit } from "../support/texts.ts";

const textOf = (text: string): Text => Text.of(text.split("\n"));

it("each line is in a chunk, or stands for one that is alike", () => {
  fc.assert(
    fc.property(anyEditorEdit, ([before, after]) => {
      fc.pre(!before.startsWith("\ufeff"));
      const { old, now, chunks } = differenceBetween(textOf(before), textOf(after));
      for (let line = 0; line < now.lines; line += 1) {
        const isIn = chunks.some(({ newFrom, newTo }) => newFrom <= line && line < newTo);
        expect(chunkAt(chunks, line, false).isIn).toBe(isIn);
        if (!isIn) expect(old.line(oldLineOf(chunks, line) + 1).text).toBe(now.line(line + 1).text);
      }
      for (let line = 0; line < old.lines; line += 1) {
        const isIn = chunks.some(({ oldFrom, oldTo }) => oldFrom <= line && line < oldTo);
        expect(chunkAt(chunks, line, true).isIn).toBe(isIn);
      }
    }),
  );
});

it("the marks of a chunk are kept while the text changes elsewhere", () => {
  const old = textOf("a b\n1\n2\nc d\n");
  const first = differenceBetween(old, textOf("a x\n1\n2\nc y\n"));
  const known = first.chunks.map((chunk) => marksOf(first, chunk));
  const next = differenceBetween(old, textOf("a z\n1\n2\nc y\n"), first);
  const marks = next.chunks.map((chunk) => marksOf(next, chunk));
  expect(marks[1]).toBe(known[1]);
  expect(marks[0]).not.toBe(known[0]);
});

it("only lines that are alike are folded, the same ones on both sides", () => {
  const long = fc
    .tuple(anyEditorEdit, fc.nat(40), fc.nat(40))
    .map(([[before, after], above, below]): [string, string] => {
      const lines = (count: number): string => Array.from({ length: count }, (_, at) => `same ${at}\n`).join("");
      return [lines(above) + before + lines(below), lines(above) + after + lines(below)];
    });
  fc.assert(
    fc.property(long, ([before, after]) => {
      fc.pre(!before.startsWith("\ufeff"));
      const { old, now, chunks } = differenceBetween(textOf(before), textOf(after));
      const [left, right] = [foldsOf(chunks, old, true), foldsOf(chunks, now, false)];
      expect(left.map(({ hunk, count }) => [hunk, count])).toEqual(right.map(({ hunk, count }) => [hunk, count]));
      right.forEach(({ from, to, count }, at) => {
        const [first, last] = [now.lineAt(from).number - 1, now.lineAt(to).number];
        expect(last - first).toBe(count);
        for (const { newFrom, newTo } of chunks) {
          expect(newTo + MARGIN <= first || last + MARGIN <= newFrom).toBe(true);
        }
        const other = old.lineAt(left[at]?.from ?? 0).number - 1;
        expect(linesOf(old, other, other + count)).toEqual(linesOf(now, first, last));
      });
    }),
  );
});
