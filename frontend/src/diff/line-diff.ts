// The hunks between two texts by lines, counted as everywhere else: the same comparison as in src/isthmus/text/diff.py,
// so that a number means the same hunk here, in an editor and in a terminal. Pure.

/** Lines `oldFrom` to `oldTo` (from 0, the last one not included) are replaced by lines `newFrom` to `newTo`. */
export interface LineHunk {
  oldFrom: number;
  oldTo: number;
  newFrom: number;
  newTo: number;
}

/** Lines on both sides that are compared in full; longer parts are split first at lines that occur once. */
const SMALL = 4_000;
/** From this number of lines on, lines that occur very often begin no match. */
const MANY_LINES = 200;

/** Return the lines of a text, each with its line feed; the last one may have none. */
export function splitLines(text: string): string[] {
  const lines: string[] = [];
  let from = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
    lines.push(text.slice(from, at + 1));
    from = at + 1;
  }
  if (from < text.length) lines.push(text.slice(from));
  return lines;
}

/** Return the old text as it is compared with the new one: without a byte order mark that the new one lacks. */
export function comparable(before: string, after: string): string {
  return before.startsWith("\ufeff") && !after.startsWith("\ufeff") ? before.slice(1) : before;
}

/** What is left of two texts without the whole lines that both begin and end with. */
export interface Rest {
  before: string;
  after: string;
  /** Number of lines that both begin with. */
  lines: number;
}

/** Return what is left of two texts without the lines that both begin and end with. It is quick for texts of any size. */
export function restOf(before: string, after: string): Rest {
  const least = Math.min(before.length, after.length);
  const begin = alikeUntil(least, (at, size) => before.slice(at, at + size) === after.slice(at, at + size));
  const isSame = begin === before.length && begin === after.length;
  const from = isSame ? begin : afterLastLineFeed(before.slice(0, begin));
  let to = alikeUntil(least - from, (at, size) => {
    const part = (text: string): string => text.slice(text.length - at - size, text.length - at);
    return part(before) === part(after);
  });
  const beginsLine = (text: string): boolean => text.length - to === from || text[text.length - to - 1] === "\n";
  if (!beginsLine(before) || !beginsLine(after)) {
    const end = before.slice(before.length - to).indexOf("\n");
    to = end < 0 ? 0 : to - end - 1;
  }
  return {
    before: before.slice(from, before.length - to),
    after: after.slice(from, after.length - to),
    lines: countLineFeeds(before.slice(0, from)),
  };
}

function afterLastLineFeed(text: string): number {
  return text.lastIndexOf("\n") + 1;
}

/** Return the length of what is alike, at most `most`. `isAlike` compares `size` characters after the first `at`. */
function alikeUntil(most: number, isAlike: (at: number, size: number) => boolean): number {
  let at = 0;
  for (let size = 1 << 16; size >= 1; size >>= 2) while (at + size <= most && isAlike(at, size)) at += size;
  return at;
}

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Return the hunks between texts, in order. */
export function textHunks(before: string, after: string): LineHunk[] {
  return restHunks(restOf(before, after));
}

/** Return the hunks between texts of which this is left. */
export function restHunks({ before, after, lines }: Rest): LineHunk[] {
  return lineHunks(splitLines(before), splitLines(after)).map(({ oldFrom, oldTo, newFrom, newTo }) => ({
    oldFrom: oldFrom + lines,
    oldTo: oldTo + lines,
    newFrom: newFrom + lines,
    newTo: newTo + lines,
  }));
}

/** Return the hunks between texts as an editor counts their lines: after a final line feed comes an empty one. */
export function editorHunks(before: string, after: string): LineHunk[] {
  const hunks = textHunks(before, after);
  const last = hunks.at(-1);
  const hasEmptyEnd = (text: string): boolean => text === "" || text.endsWith("\n");
  // An empty line that only one of them has at its end belongs to the last hunk, which reaches both ends then.
  if (last && hasEmptyEnd(before) !== hasEmptyEnd(after)) {
    last.oldTo = countLineFeeds(before) + 1;
    last.newTo = countLineFeeds(after) + 1;
  }
  return hunks;
}

/** Return the hunks between lines, in order. Lines between hunks are alike on both sides. */
export function lineHunks(old: readonly string[], now: readonly string[]): LineHunk[] {
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]): Int32Array =>
    Int32Array.from(lines, (line) => {
      const known = numbers.get(line);
      if (known !== undefined) return known;
      numbers.set(line, numbers.size);
      return numbers.size - 1;
    });
  const a = numbered(old);
  const b = numbered(now);
  return joined(hunksOfPart(a, b, { oldFrom: 0, oldTo: a.length, newFrom: 0, newTo: b.length }, true));
}

function hunksOfPart(a: Int32Array, b: Int32Array, part: LineHunk, maySplit: boolean): LineHunk[] {
  const rest = trimmed(a, b, part);
  const { oldFrom, oldTo, newFrom, newTo } = rest;
  if (oldFrom === oldTo && newFrom === newTo) return [];
  if (oldFrom === oldTo || newFrom === newTo) return [rest];
  if (oldTo - oldFrom + newTo - newFrom <= SMALL) return between(longestMatches(a, b, rest), rest);
  const pairs = maySplit ? uniquePairs(a, b, rest) : [];
  if (!pairs.length) return [rest];
  return between(
    pairs.map(([i, j]) => [i, j, 1]),
    rest,
  ).flatMap((one) => hunksOfPart(a, b, one, false));
}

function trimmed(a: Int32Array, b: Int32Array, part: LineHunk): LineHunk {
  let { oldFrom, oldTo, newFrom, newTo } = part;
  while (oldFrom < oldTo && newFrom < newTo && a[oldFrom] === b[newFrom]) {
    oldFrom += 1;
    newFrom += 1;
  }
  while (oldFrom < oldTo && newFrom < newTo && a[oldTo - 1] === b[newTo - 1]) {
    oldTo -= 1;
    newTo -= 1;
  }
  return { oldFrom, oldTo, newFrom, newTo };
}

/** A run of lines that are alike: where it begins in the old and in the new text, and its length. */
type Match = [number, number, number];

/** Return what lies between matches, which are in order. */
function between(matches: readonly Match[], { oldFrom, oldTo, newFrom, newTo }: LineHunk): LineHunk[] {
  const found: LineHunk[] = [];
  let from: [number, number] = [oldFrom, newFrom];
  for (const [i, j, size] of [...matches, [oldTo, newTo, 0] as Match]) {
    if (i > from[0] || j > from[1]) found.push({ oldFrom: from[0], oldTo: i, newFrom: from[1], newTo: j });
    from = [i + size, j + size];
  }
  return found;
}

/** Return the matches of Python's difflib: the longest one, then those before and after it in the same way. */
function longestMatches(a: Int32Array, b: Int32Array, part: LineHunk): Match[] {
  const places = new Map<number, number[]>();
  const size = part.newTo - part.newFrom;
  for (let j = part.newFrom; j < part.newTo; j += 1) {
    const line = b[j] as number;
    const known = places.get(line);
    if (known) known.push(j);
    else places.set(line, [j]);
  }
  if (size >= MANY_LINES)
    for (const [line, found] of places) if (found.length > Math.floor(size / 100) + 1) places.delete(line);
  const found: Match[] = [];
  const open: LineHunk[] = [part];
  for (let one = open.pop(); one; one = open.pop()) {
    const [i, j, length] = longestMatch(a, b, places, one);
    if (length === 0) continue;
    found.push([i, j, length]);
    const { oldFrom, oldTo, newFrom, newTo } = one;
    if (oldFrom < i && newFrom < j) open.push({ oldFrom, oldTo: i, newFrom, newTo: j });
    if (i + length < oldTo && j + length < newTo) open.push({ oldFrom: i + length, oldTo, newFrom: j + length, newTo });
  }
  return found.sort(([i], [k]) => i - k);
}

function longestMatch(
  a: Int32Array,
  b: Int32Array,
  places: ReadonlyMap<number, readonly number[]>,
  { oldFrom, oldTo, newFrom, newTo }: LineHunk,
): Match {
  let i = oldFrom;
  let j = newFrom;
  let size = 0;
  let lengths = new Map<number, number>();
  for (let at = oldFrom; at < oldTo; at += 1) {
    const next = new Map<number, number>();
    for (const other of places.get(a[at] as number) ?? []) {
      if (other < newFrom) continue;
      if (other >= newTo) break;
      const length = (lengths.get(other - 1) ?? 0) + 1;
      next.set(other, length);
      if (length > size) [i, j, size] = [at - length + 1, other - length + 1, length];
    }
    lengths = next;
  }
  // Lines that occur too often to begin a match are a part of one beside them.
  while (i > oldFrom && j > newFrom && a[i - 1] === b[j - 1]) {
    i -= 1;
    j -= 1;
    size += 1;
  }
  while (i + size < oldTo && j + size < newTo && a[i + size] === b[j + size]) size += 1;
  return [i, j, size];
}

/** Return the lines that occur once on each side, as many of them as have the same order. */
function uniquePairs(a: Int32Array, b: Int32Array, { oldFrom, oldTo, newFrom, newTo }: LineHunk): [number, number][] {
  const MANY = -1;
  const places = (lines: Int32Array, from: number, to: number): Map<number, number> => {
    const found = new Map<number, number>();
    for (let at = from; at < to; at += 1) found.set(lines[at] as number, found.has(lines[at] as number) ? MANY : at);
    return found;
  };
  const inOld = places(a, oldFrom, oldTo);
  const pairs: [number, number][] = [];
  for (const [line, at] of places(b, newFrom, newTo)) {
    const other = inOld.get(line) ?? MANY;
    if (at !== MANY && other !== MANY) pairs.push([other, at]);
  }
  return rising(pairs.sort(([, j], [, k]) => j - k));
}

/** Return a longest selection of pairs whose first numbers rise. */
function rising(pairs: readonly [number, number][]): [number, number][] {
  const ends: number[] = [];
  const before = new Int32Array(pairs.length);
  pairs.forEach(([i], at) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[ends[middle] as number] as [number, number])[0] < i) low = middle + 1;
      else high = middle;
    }
    before[at] = low > 0 ? (ends[low - 1] as number) : -1;
    ends[low] = at;
  });
  const chosen: [number, number][] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at] as number) chosen.push(pairs[at] as [number, number]);
  return chosen.reverse();
}

/** Return hunks in order, with those that touch each other joined. */
function joined(hunks: readonly LineHunk[]): LineHunk[] {
  const result: LineHunk[] = [];
  for (const hunk of hunks) {
    const last = result.at(-1);
    if (last && hunk.oldFrom <= last.oldTo && hunk.newFrom <= last.newTo) {
      last.oldTo = Math.max(last.oldTo, hunk.oldTo);
      last.newTo = Math.max(last.newTo, hunk.newTo);
    } else {
      result.push({ ...hunk });
    }
  }
  return result;
}
