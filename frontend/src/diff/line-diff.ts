// The hunks between two texts by lines, of any size: unique lines first, then the shortest edit where that is cheap. Pure.

/** Lines `oldFrom` to `oldTo` (from 0, the last one not included) are replaced by lines `newFrom` to `newTo`. */
export interface LineHunk {
  oldFrom: number;
  oldTo: number;
  newFrom: number;
  newTo: number;
}

/** Maximum number of edits that are looked for between lines that occur more than once. */
const EFFORT = 400;

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

/** Return the hunks between lines, in order. Lines between hunks are alike on both sides. */
export function lineHunks(old: readonly string[], now: readonly string[]): LineHunk[] {
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]): Int32Array => Int32Array.from(lines, (line) => {
    const known = numbers.get(line);
    if (known !== undefined) return known;
    numbers.set(line, numbers.size);
    return numbers.size - 1;
  });
  const a = numbered(old), b = numbered(now), found: LineHunk[] = [];
  const open: LineHunk[] = [{ oldFrom: 0, oldTo: a.length, newFrom: 0, newTo: b.length }];
  for (let part = open.pop(); part; part = open.pop()) {
    const rest = trimmed(a, b, part);
    if (rest.oldFrom === rest.oldTo && rest.newFrom === rest.newTo) continue;
    const parts = rest.oldFrom === rest.oldTo || rest.newFrom === rest.newTo ? undefined : aroundUnique(a, b, rest);
    if (parts) open.push(...parts.reverse());
    else found.push(...shortest(a, b, rest));
  }
  return joined(found);
}

function trimmed(a: Int32Array, b: Int32Array, part: LineHunk): LineHunk {
  let { oldFrom, oldTo, newFrom, newTo } = part;
  while (oldFrom < oldTo && newFrom < newTo && a[oldFrom] === b[newFrom]) { oldFrom += 1; newFrom += 1; }
  while (oldFrom < oldTo && newFrom < newTo && a[oldTo - 1] === b[newTo - 1]) { oldTo -= 1; newTo -= 1; }
  return { oldFrom, oldTo, newFrom, newTo };
}

/** Return the parts between the lines that occur once on each side, as many of them as have the same order; undefined if there are none. */
function aroundUnique(a: Int32Array, b: Int32Array, { oldFrom, oldTo, newFrom, newTo }: LineHunk): LineHunk[] | undefined {
  const MANY = -1, places = (lines: Int32Array, from: number, to: number): Map<number, number> => {
    const found = new Map<number, number>();
    for (let at = from; at < to; at += 1) found.set(lines[at] as number, found.has(lines[at] as number) ? MANY : at);
    return found;
  };
  const inNew = places(b, newFrom, newTo), pairs: [number, number][] = [];
  for (const [line, at] of places(a, oldFrom, oldTo)) {
    const other = inNew.get(line) ?? MANY;
    if (at !== MANY && other !== MANY) pairs.push([at, other]);
  }
  if (!pairs.length) return undefined;
  const parts: LineHunk[] = [];
  let from: [number, number] = [oldFrom, newFrom];
  for (const [i, j] of rising(pairs.sort(([i], [k]) => i - k))) {
    parts.push({ oldFrom: from[0], oldTo: i, newFrom: from[1], newTo: j });
    from = [i + 1, j + 1];
  }
  parts.push({ oldFrom: from[0], oldTo, newFrom: from[1], newTo });
  return parts;
}

/** Return a longest selection of pairs whose second numbers rise. */
function rising(pairs: readonly [number, number][]): [number, number][] {
  const ends: number[] = [], before = new Int32Array(pairs.length);
  pairs.forEach(([, j], at) => {
    let low = 0, high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[ends[middle] as number] as [number, number])[1] < j) low = middle + 1;
      else high = middle;
    }
    before[at] = low > 0 ? (ends[low - 1] as number) : -1;
    ends[low] = at;
  });
  const chosen: [number, number][] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at] as number) chosen.push(pairs[at] as [number, number]);
  return chosen.reverse();
}

/** Return the hunks of a shortest edit (Myers); all of the part if it has more edits than are looked for. */
function shortest(a: Int32Array, b: Int32Array, part: LineHunk): LineHunk[] {
  const { oldFrom, oldTo, newFrom, newTo } = part, n = oldTo - oldFrom, m = newTo - newFrom;
  if (n === 0 || m === 0) return [part];
  const limit = Math.min(n + m, EFFORT), reached = new Int32Array(2 * limit + 3), trace: Int32Array[] = [], middle = limit + 1;
  for (let edits = 0; edits <= limit; edits += 1) {
    trace.push(reached.slice());
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && (reached[middle + k - 1] as number) < (reached[middle + k + 1] as number));
      let x = down ? (reached[middle + k + 1] as number) : (reached[middle + k - 1] as number) + 1, y = x - k;
      while (x < n && y < m && a[oldFrom + x] === b[newFrom + y]) { x += 1; y += 1; }
      reached[middle + k] = x;
      if (x >= n && y >= m) return steps(trace, middle, part, edits);
    }
  }
  return [part];
}

function steps(trace: readonly Int32Array[], middle: number, { oldFrom, oldTo, newFrom, newTo }: LineHunk, last: number): LineHunk[] {
  const hunks: LineHunk[] = [];
  let x = oldTo - oldFrom, y = newTo - newFrom;
  for (let edits = last; edits > 0; edits -= 1) {
    const reached = trace[edits] as Int32Array, k = x - y;
    const down = k === -edits || (k !== edits && (reached[middle + k - 1] as number) < (reached[middle + k + 1] as number));
    const oldX = reached[middle + (down ? k + 1 : k - 1)] as number, oldY = oldX - (down ? k + 1 : k - 1);
    hunks.push(down
      ? { oldFrom: oldFrom + oldX, oldTo: oldFrom + oldX, newFrom: newFrom + oldY, newTo: newFrom + oldY + 1 }
      : { oldFrom: oldFrom + oldX, oldTo: oldFrom + oldX + 1, newFrom: newFrom + oldY, newTo: newFrom + oldY });
    x = oldX;
    y = oldY;
  }
  return hunks.reverse();
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
