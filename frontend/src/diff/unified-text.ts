// A change as a unified diff, to copy. Pure.

import { comparable, lineHunks, splitLines } from "./line-diff.ts";

const AROUND = 3;

/** Return a change of a file as `git apply` reads it; without a text before, the file is new. */
export function unifiedText(path: string, before: string | undefined, after: string): string {
  const name = path.replace(/^\//, "");
  const old = splitLines(comparable(before ?? "", after));
  const now = splitLines(after);
  const pieces = [
    before === undefined ? "--- /dev/null" : `--- a/${name}`,
    before !== undefined && after === "" ? "+++ /dev/null" : `+++ b/${name}`,
  ];
  for (const group of near(lineHunks(old, now))) pieces.push(...hunkLines(group, old, now));
  return `${pieces.join("\n")}\n`;
}

type Hunk = ReturnType<typeof lineHunks>[number];

/** Return changes in groups whose lines around them touch. */
function near(hunks: readonly Hunk[]): Hunk[][] {
  const groups: Hunk[][] = [];
  for (const hunk of hunks) {
    const last = groups.at(-1);
    if (last && hunk.oldFrom - (last.at(-1)?.oldTo ?? 0) <= 2 * AROUND) last.push(hunk);
    else groups.push([hunk]);
  }
  return groups;
}

function hunkLines(group: readonly Hunk[], old: readonly string[], now: readonly string[]): string[] {
  const [first, last] = [group[0], group.at(-1)];
  if (!first || !last) return [];
  const from = Math.max(0, first.oldFrom - AROUND);
  const to = Math.min(old.length, last.oldTo + AROUND);
  const begin = first.newFrom - (first.oldFrom - from);
  const end = last.newTo + (to - last.oldTo);
  const range = (at: number, until: number): string =>
    until - at === 1 ? `${at + 1}` : `${until > at ? at + 1 : at},${until - at}`;
  const lines = [`@@ -${range(from, to)} +${range(begin, end)} @@`];
  let at = from;
  for (const hunk of group) {
    lines.push(...old.slice(at, hunk.oldFrom).flatMap((line) => marked(" ", line)));
    lines.push(...old.slice(hunk.oldFrom, hunk.oldTo).flatMap((line) => marked("-", line)));
    lines.push(...now.slice(hunk.newFrom, hunk.newTo).flatMap((line) => marked("+", line)));
    at = hunk.oldTo;
  }
  lines.push(...old.slice(at, to).flatMap((line) => marked(" ", line)));
  return lines;
}

function marked(mark: string, line: string): string[] {
  return line.endsWith("\n") ? [mark + line.slice(0, -1)] : [mark + line, "\\ No newline at end of file"];
}
