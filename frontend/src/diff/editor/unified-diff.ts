// A unified diff, as /diff of the agent writes it, taken apart by file. Each line of it ends up in exactly one file or note.

/** A file of a diff: the shown parts of its old and its new text, with the numbers of their lines (0: a heading of a part). */
export interface FilePart {
  path: string;
  before: string;
  after: string;
  numbersBefore: number[];
  numbersAfter: number[];
  isNew: boolean;
  added: number;
  removed: number;
}

export interface SessionDiff {
  files: FilePart[];
  /** Lines outside of any diff, such as those about binary files. */
  notes: string[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

interface Open extends Omit<FilePart, "before" | "after"> {
  old: string[];
  now: string[];
}

/** Take a diff apart; the lines around it (a fence, empty lines) are left out. */
export function filesOf(text: string): SessionDiff {
  const lines = text.split("\n");
  const files: Open[] = [];
  const notes: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const next = lines[at + 1] ?? "";
    const hunk = HUNK.exec(line);
    const file = files.at(-1);
    if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      files.push({
        path: next.slice(4).replace(/^b\//, ""),
        old: [],
        now: [],
        numbersBefore: [],
        numbersAfter: [],
        isNew: line === "--- /dev/null",
        added: 0,
        removed: 0,
      });
      at += 1;
    } else if (hunk && file) {
      at = takeHunk(lines, at, hunk, file);
    } else if (line.trim() && !line.startsWith("```") && !line.startsWith("\\ ")) {
      notes.push(line);
    }
  }
  return {
    files: files.map(({ old, now, ...rest }) => ({ ...rest, before: old.join("\n"), after: now.join("\n") })),
    notes,
  };
}

/** Add the lines of a part to its file, as many as its heading says; return the index of the last one. */
function takeHunk(lines: string[], from: number, hunk: RegExpExecArray, file: Open): number {
  let old = Number(hunk[1]);
  let now = Number(hunk[3]);
  let at = from;
  const oldEnd = old + Number(hunk[2] ?? 1);
  const nowEnd = now + Number(hunk[4] ?? 1);
  if (file.old.length + file.now.length > 0 || (old > 1 && now > 1)) {
    add(file.old, file.numbersBefore, hunk[0], 0);
    add(file.now, file.numbersAfter, hunk[0], 0);
  }
  for (; old < oldEnd || now < nowEnd; at += 1) {
    const line = lines[at + 1];
    if (line === undefined) break;
    const content = line.slice(1);
    if (line[0] === "+") {
      add(file.now, file.numbersAfter, content, now);
      now += 1;
      file.added += 1;
    } else if (line[0] === "-") {
      add(file.old, file.numbersBefore, content, old);
      old += 1;
      file.removed += 1;
    } else if (line[0] !== "\\") {
      add(file.old, file.numbersBefore, content, old);
      add(file.now, file.numbersAfter, content, now);
      old += 1;
      now += 1;
    }
  }
  return at;
}

function add(lines: string[], numbers: number[], line: string, number: number): void {
  lines.push(line);
  numbers.push(number);
}
