// What is odd in a change, so that it is said above it: another host than before, a new script, a character that hides. Pure.

import { MARKED } from "../text/safe.ts";
import { type LineHunk, restOf, splitLines } from "./line-diff.ts";

export type Odd =
  /** A line names a host that the text did not name before; `before` are some that it named. */
  | { is: "host"; line: number; hunk: number; host: string; before: string[] }
  /** The first line makes the file a program of this interpreter, and did not before. */
  | { is: "script"; line: number; hunk: number; program: string }
  /** Lines have characters that do not show, or look like others: as many as `count`, the first one on the line. */
  | { is: "hidden"; line: number; hunk: number; count: number };

/** Maximum number of hosts that are told. */
const HOSTS = 5;
const MAXIMUM_NAME = 80;
/** The host of an address; what stands before its last @ is a name of a user. */
const HOST = /\b[a-z][a-z0-9+.-]{1,20}:\/\/(?:[^\s/\\?#"'`<>]*@)?([^\s/\\:?#@"'`<>()[\]{},;]+)/gi;

/** Return what is odd in a change with these hunks; `before` is undefined for a new file. */
export function oddIn(before: string | undefined, after: string, hunks: readonly LineHunk[]): Odd[] {
  const rest = restOf(before ?? "", after);
  const [old, now] = [splitLines(rest.before), splitLines(rest.after)];
  const within = hunks.map(({ oldFrom, oldTo, newFrom, newTo }) => ({
    oldFrom: oldFrom - rest.lines,
    oldTo: oldTo - rest.lines,
    newFrom: newFrom - rest.lines,
    newTo: newTo - rest.lines,
  }));
  const shifted = (odd: Odd): Odd => ({ ...odd, line: odd.line + rest.lines });
  return [
    ...hostsIn(before ?? "", now, within).map(shifted),
    ...scriptIn(before ?? "", after, hunks),
    ...hiddenIn(old, now, within).map(shifted),
  ];
}

function hostsIn(old: string, now: readonly string[], hunks: readonly LineHunk[]): Odd[] {
  const named = hunks.flatMap(({ newFrom, newTo }, hunk) =>
    now
      .slice(newFrom, newTo)
      .flatMap((text, at) => hostsOf(text).map((host) => ({ line: newFrom + at + 1, hunk, host }))),
  );
  if (!named.length) return [];
  const known = new Set(hostsOf(old));
  const before = [...known].slice(0, 2);
  const found: Odd[] = [];
  for (const place of known.size ? named : []) {
    if (known.has(place.host)) continue;
    known.add(place.host);
    found.push({ is: "host", ...place, before });
    if (found.length === HOSTS) break;
  }
  return found;
}

function hostsOf(text: string): string[] {
  return [...text.matchAll(HOST)].map(([, host = ""]) => host.toLowerCase().replace(/\.$/, ""));
}

function scriptIn(old: string, now: string, hunks: readonly LineHunk[]): Odd[] {
  const program = /^#!\s*(\S.*)/.exec(now)?.[1];
  if (program === undefined || old.startsWith("#!")) return [];
  const hunk = hunks.findIndex(({ newFrom, newTo }) => newFrom === 0 && newTo > 0);
  return hunk < 0 ? [] : [{ is: "script", line: 1, hunk, program: program.trim().slice(0, MAXIMUM_NAME) }];
}

function hiddenIn(old: readonly string[], now: readonly string[], hunks: readonly LineHunk[]): Odd[] {
  let [line, at, count] = [0, 0, 0];
  for (const [hunk, { oldFrom, oldTo, newFrom, newTo }] of hunks.entries()) {
    const marked = (texts: readonly string[], from: number, to: number): number[] =>
      texts.slice(from, to).map((text) => text.replace(/\r?\n$/, "").match(MARKED)?.length ?? 0);
    const was = marked(old, oldFrom, oldTo).reduce((sum, one) => sum + one, 0);
    const is = marked(now, newFrom, newTo);
    const more = is.reduce((sum, one) => sum + one, 0) - was;
    if (more <= 0) continue;
    if (!count) [line, at] = [newFrom + is.findIndex((one) => one > 0) + 1, hunk];
    count += more;
  }
  return count ? [{ is: "hidden", line, hunk: at, count }] : [];
}
