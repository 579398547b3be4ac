// Compares texts of any size in a worker; where none can be had, in the page.

import { type LineHunk, lineHunks, splitLines } from "./line-diff.ts";

/** Return the hunks between two texts. */
export function compare(before: string, after: string): Promise<LineHunk[]> {
  return inWorker(before, after).catch(() => lineHunks(splitLines(before), splitLines(after)));
}

async function inWorker(before: string, after: string): Promise<LineHunk[]> {
  const worker = new Worker(new URL("./diff-worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise<LineHunk[]>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<LineHunk[]>) => resolve(data);
      worker.onerror = () => reject(new Error("the worker did not start"));
      worker.postMessage({ before, after });
    });
  } finally {
    worker.terminate();
  }
}
