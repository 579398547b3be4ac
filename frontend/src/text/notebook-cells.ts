// The changes between two notebooks (nbformat 4, JSON) by cell, for people to read. What is written is the text itself.

type Json = Record<string, unknown>;

export interface Cell {
  kind: string;
  source: string;
  outputs: unknown[];
  /** All else, as JSON: metadata, attachments, execution count. */
  rest: string;
  id: string;
}

export interface CellChange {
  what: "changed" | "added" | "removed" | "moved";
  /** Number of the cell, from 1: in the new notebook, or in the old one if it is removed. */
  number: number;
  old: Cell | undefined;
  new: Cell | undefined;
  /** Whether the outputs differ. */
  hasOtherOutputs: boolean;
}

export interface NotebookChanges {
  cells: CellChange[];
  same: number;
  /** All but the cells, as JSON, where it differs. */
  rest: { old: string; new: string } | undefined;
  /** Ending of a file name for the language of its code. */
  ending: string;
}

/** Limits of what is compared; longer notebooks are shown as JSON. */
const MAXIMUM = 4_000_000;
const MAXIMUM_PAIRS = 1_000_000;
const MAXIMUM_CHANGES = 200;

interface Notebook {
  cells: Cell[];
  rest: string;
  ending: string;
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Return a notebook; undefined for anything else. */
function parsed(text: string): Notebook | undefined {
  if (text.length > MAXIMUM) return undefined;
  try {
    const value: unknown = JSON.parse(text.replace(/^\ufeff/, ""));
    if (!isObject(value) || !Array.isArray(value.cells)) return undefined;
    const { cells, ...rest } = value;
    const found = (cells as unknown[]).map(cellOf);
    const info =
      isObject(rest.metadata) && isObject(rest.metadata.language_info)
        ? rest.metadata.language_info.file_extension
        : undefined;
    const ending = typeof info === "string" && /^\.\w{1,8}$/.test(info) ? info : ".py";
    return found.every((cell) => cell !== undefined)
      ? { cells: found, rest: JSON.stringify(rest, null, 1), ending }
      : undefined;
  } catch {
    return undefined;
  }
}

function cellOf(value: unknown): Cell | undefined {
  if (!isObject(value) || typeof value.cell_type !== "string") return undefined;
  const { cell_type: kind, source, outputs = [], id = "", ...rest } = value;
  const lines = Array.isArray(source) && source.every((line) => typeof line === "string") ? source.join("") : source;
  if (typeof lines !== "string" || !Array.isArray(outputs) || typeof id !== "string") return undefined;
  return { kind, source: lines, outputs, id, rest: JSON.stringify(rest, null, 1) };
}

const keyOf = (cell: Cell): string => (cell.id ? `id ${cell.id}` : `${cell.kind} ${cell.source}`);

/** Return the pairs of a longest common sequence of keys, in order. */
function common(old: string[], now: string[]): [number, number][] {
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    const row = lengths[i];
    if (row)
      for (let j = now.length - 1; j >= 0; j -= 1)
        row[j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < old.length && j < now.length;) {
    if (old[i] === now[j]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Return the changes of a notebook; undefined if one of the texts is not a notebook, or is too large. */
export function notebookChanges(before: string | undefined, after: string): NotebookChanges | undefined {
  const old = before === undefined ? { cells: [], rest: "{}", ending: "" } : parsed(before);
  const now = parsed(after);
  if (!old || !now || old.cells.length * now.cells.length > MAXIMUM_PAIRS) return undefined;
  const oldOf = new Map<number, number>();
  const moved = new Set<number>();
  const anchors = common(old.cells.map(keyOf), now.cells.map(keyOf));
  for (const [i, j] of anchors) oldOf.set(j, i);
  const used = new Set(oldOf.values());
  now.cells.forEach((cell, j) => {
    if (oldOf.has(j) || !cell.id) return;
    const i = old.cells.findIndex((one, at) => one.id === cell.id && !used.has(at));
    if (i >= 0) {
      oldOf.set(j, i);
      used.add(i);
      moved.add(j);
    }
  });
  // Cells without an id whose text changed: those between the same neighbours belong together, in their order.
  let from = [0, 0];
  for (const [i, j] of [...anchors, [old.cells.length, now.cells.length] as const]) {
    let next = from[0] ?? 0;
    for (let at = from[1] ?? 0; at < j; at += 1) {
      if (oldOf.has(at) || now.cells[at]?.id) continue;
      while (next < i && (used.has(next) || old.cells[next]?.kind !== now.cells[at]?.kind)) next += 1;
      if (next < i) {
        oldOf.set(at, next);
        used.add(next);
      }
    }
    from = [i + 1, j + 1];
  }
  const cells: CellChange[] = [];
  let removed = 0;
  let same = 0;
  const takeRemoved = (until: number): void => {
    for (; removed < until; removed += 1) {
      const cell = old.cells[removed];
      if (cell && !used.has(removed))
        cells.push({
          what: "removed",
          number: removed + 1,
          old: cell,
          new: undefined,
          hasOtherOutputs: cell.outputs.length > 0,
        });
    }
  };
  now.cells.forEach((cell, j) => {
    const i = oldOf.get(j);
    const was = i === undefined ? undefined : old.cells[i];
    if (i !== undefined && !moved.has(j)) takeRemoved(i);
    const hasOtherOutputs = JSON.stringify(was?.outputs ?? []) !== JSON.stringify(cell.outputs);
    const isSame =
      was !== undefined &&
      !hasOtherOutputs &&
      was.source === cell.source &&
      was.kind === cell.kind &&
      was.rest === cell.rest &&
      was.id === cell.id;
    if (isSame && !moved.has(j)) {
      same += 1;
      return;
    }
    cells.push({
      what: was === undefined ? "added" : moved.has(j) ? "moved" : "changed",
      number: j + 1,
      old: was,
      new: cell,
      hasOtherOutputs,
    });
  });
  takeRemoved(old.cells.length);
  if (cells.length > MAXIMUM_CHANGES) return undefined;
  return {
    cells,
    same,
    rest: old.rest === now.rest ? undefined : { old: old.rest, new: now.rest },
    ending: now.ending,
  };
}
