// Comments of the user on lines of a diff. They go back to the agent with a rejection.

export interface LineComment {
  id: number;
  /** Side of the diff: the text as it is, or as the agent proposes it. */
  side: "old" | "new";
  /** Number of the line in the text of its side, from 1. */
  line: number;
  text: string;
}

export interface Place {
  side: "old" | "new";
  line: number;
  /** Number of the line as it is shown, where what was kept or typed above has moved it. */
  shown?: number;
}

let last = 0;

export function newComment({ side, line }: Place): LineComment {
  last += 1;
  return { id: last, side, line, text: "" };
}

/** Return the comments that say something, from the first line to the last. */
export function saidComments(comments: readonly LineComment[]): LineComment[] {
  return comments
    .filter((one) => one.text.trim())
    .sort((one, other) => one.line - other.line || (one.side === "old" ? -1 : 1));
}

/** Return comments for the agent, which reads them in English whatever the language of the page: a line for each. */
export function commentText(path: string, comments: readonly LineComment[]): string {
  return saidComments(comments)
    .map(({ side, line, text }) => {
      const words = text.trim().split(/\r?\n/).join("\n  ");
      return `${path}:${line}${side === "old" ? " (the line as it was)" : ""}: ${words}`;
    })
    .join("\n");
}
