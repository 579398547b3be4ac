// The words of changed lines that differ: which old line a new one stands for, and what of both is marked. Pure.

/** A marked part of a line, from one character to another. */
export type Mark = readonly [from: number, to: number];

/** The marked parts of each line of a hunk. Lines that stand for no other one have none: all of them is new, or gone. */
export interface HunkMarks {
  old: readonly (readonly Mark[])[];
  now: readonly (readonly Mark[])[];
}

/** Words, single letters of scripts without blanks between words, blanks, and single other characters. */
const TOKEN =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]|(?:(?![\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}])[\p{L}\p{N}\p{M}_])+|\s+|[^]/gu;
const WORD = /[\p{L}\p{N}_]/u;
/** Weight of a sign beside a word, when lines are compared. */
const SIGN = 0.25;
/** Lines that have less in common are not each other's. */
const ALIKE = 0.4;
/** What of that is taken off for each line that they are apart, and at most. */
const LOSS = 0.03;
const MOST_LOSS = 0.3;
/** As many lines on both sides are compared one by one; of more than these none is marked. */
const MOST_LINES = 2_000;
/** Numbers of pairs of lines, and of pairs of words, that are compared in full. */
const MOST_PAIRS = 10_000;
const MOST_TOKENS = 250_000;
/** Characters of a line that are taken apart into words. */
const MOST_CHARACTERS = 20_000;

/** Return what of the lines of a hunk is marked. */
export function hunkMarks(old: readonly string[], now: readonly string[]): HunkMarks {
  const oldMarks: (readonly Mark[])[] = old.map(() => []);
  const newMarks: (readonly Mark[])[] = now.map(() => []);
  for (const [i, j] of linePairs(old, now)) [oldMarks[i], newMarks[j]] = lineMarks(old[i] ?? "", now[j] ?? "");
  return { old: oldMarks, now: newMarks };
}

/** Return the pairs of lines that stand for each other, both in order. */
export function linePairs(old: readonly string[], now: readonly string[]): [number, number][] {
  if (old.length * now.length > MOST_PAIRS && (old.length !== now.length || old.length > MOST_LINES)) return [];
  const olds = old.map(weightsOf);
  const news = now.map(weightsOf);
  if (old.length === 1 && now.length === 1) return likeness(olds[0], news[0]) > 0 ? [[0, 0]] : [];
  if (old.length * now.length > MOST_PAIRS) {
    return old.map((_, at): [number, number] => [at, at]).filter(([i, j]) => likeness(olds[i], news[j]) >= ALIKE);
  }
  // The pairs that have most in common altogether, none of them crossing another.
  const width = now.length + 1;
  const best = new Float64Array((old.length + 1) * width);
  const scores = new Float64Array(old.length * now.length);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const found = likeness(olds[i], news[j]);
      // Of lines with as much in common the nearest ones are each other's.
      const score = found >= ALIKE ? found * (1 - Math.min(MOST_LOSS, LOSS * Math.abs(i - j))) : 0;
      scores[i * now.length + j] = score;
      const paired = score > 0 ? score + (best[(i + 1) * width + j + 1] ?? 0) : 0;
      best[i * width + j] = Math.max(paired, best[(i + 1) * width + j] ?? 0, best[i * width + j + 1] ?? 0);
    }
  }
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < old.length && j < now.length;) {
    const here = best[i * width + j] ?? 0;
    const score = scores[i * now.length + j] ?? 0;
    if (score > 0 && here === score + (best[(i + 1) * width + j + 1] ?? 0)) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (here === (best[(i + 1) * width + j] ?? 0)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Return the parts of two lines that differ, by whole words. */
export function lineMarks(old: string, now: string): [Mark[], Mark[]] {
  const a = tokensOf(old);
  const b = tokensOf(now);
  let from = 0;
  let [endA, endB] = [a.length, b.length];
  while (from < endA && from < endB && a[from] === b[from]) from += 1;
  while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  const keptA = new Uint8Array(a.length).fill(1, 0, from).fill(1, endA);
  const keptB = new Uint8Array(b.length).fill(1, 0, from).fill(1, endB);
  if ((endA - from) * (endB - from) <= MOST_TOKENS) keepCommon(a, b, from, endA, endB, keptA, keptB);
  const marks = [marksOf(a, keptA), marksOf(b, keptB)] as const;
  // Another indentation is marked only where nothing else is.
  const [oldMarks, newMarks] = marks.map((all, side) =>
    all.filter(([, to]) => (side ? now : old).slice(0, to).trim() !== ""),
  ) as [Mark[], Mark[]];
  return oldMarks.length + newMarks.length ? [oldMarks, newMarks] : [...marks];
}

/** Note a longest common selection of the tokens between the places. */
function keepCommon(
  a: readonly string[],
  b: readonly string[],
  from: number,
  endA: number,
  endB: number,
  keptA: Uint8Array,
  keptB: Uint8Array,
): void {
  const width = endB - from + 1;
  const lengths = new Float32Array((endA - from + 1) * width);
  // Words in common count more than signs: brackets and blanks alone say little.
  const weight = (token: string): number => (WORD.test(token) ? 1 : SIGN);
  for (let i = endA - 1; i >= from; i -= 1) {
    for (let j = endB - 1; j >= from; j -= 1) {
      const at = (i - from) * width + j - from;
      const token = a[i] as string;
      lengths[at] = Math.max(
        token === b[j] ? (lengths[at + width + 1] ?? 0) + weight(token) : 0,
        lengths[at + width] ?? 0,
        lengths[at + 1] ?? 0,
      );
    }
  }
  for (let i = from, j = from; i < endA && j < endB;) {
    const at = (i - from) * width + j - from;
    const token = a[i] as string;
    if (token === b[j] && lengths[at] === Math.fround((lengths[at + width + 1] ?? 0) + weight(token))) {
      keptA[i] = keptB[j] = 1;
      i += 1;
      j += 1;
    } else if (lengths[at] === lengths[at + width]) i += 1;
    else j += 1;
  }
}

/** Return the stretches of tokens that are not kept. Blanks between two of them belong to them. */
function marksOf(tokens: readonly string[], kept: Uint8Array): Mark[] {
  const marks: [number, number][] = [];
  let at = 0;
  tokens.forEach((token, index) => {
    const last = marks.at(-1);
    const isBetween = !token.trim() && last?.[1] === at && kept[index + 1] === 0;
    if (!kept[index] || isBetween) {
      if (last?.[1] === at) last[1] = at + token.length;
      else marks.push([at, at + token.length]);
    }
    at += token.length;
  });
  return marks;
}

function tokensOf(line: string): string[] {
  return line.length <= MOST_CHARACTERS ? (line.match(TOKEN) ?? []) : Array.from(line);
}

function weightsOf(line: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const token of line.slice(0, 2_000).match(TOKEN) ?? [])
    if (token.trim()) found.set(token, (found.get(token) ?? 0) + (WORD.test(token) ? 1 : SIGN));
  return found;
}

/** Return how much lines have in common, from 0 to 1. */
function likeness(
  one: ReadonlyMap<string, number> = new Map(),
  other: ReadonlyMap<string, number> = new Map(),
): number {
  let common = 0;
  let all = 0;
  for (const [token, weight] of one) {
    common += Math.min(weight, other.get(token) ?? 0);
    all += weight;
  }
  for (const weight of other.values()) all += weight;
  return all ? (2 * common) / all : 1;
}
