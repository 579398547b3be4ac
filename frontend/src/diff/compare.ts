// Compares texts of any size: a small difference at once, a large one in a worker; where none can be had, in the page.

import { LIMITS } from "./change-size.ts";
import { type LineHunk, type Rest, restHunks, restOf } from "./line-diff.ts";

/** Return the hunks between two texts. */
export async function compare(before: string, after: string): Promise<LineHunk[]> {
  const rest = restOf(before, after);
  if (rest.before.length + rest.after.length <= LIMITS.characters) return restHunks(rest);
  return inWorker(rest).catch(() => restHunks(rest));
}

async function inWorker(rest: Rest): Promise<LineHunk[]> {
  const worker = new Worker(new URL("./diff-worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise<LineHunk[]>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<LineHunk[]>) => resolve(data);
      worker.onerror = () => reject(new Error("the worker did not start"));
      worker.postMessage(rest);
    });
  } finally {
    worker.terminate();
  }
}
