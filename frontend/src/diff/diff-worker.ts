// Compares two texts beside the page, which goes on meanwhile.

import { lineHunks, splitLines } from "./line-diff.ts";

addEventListener("message", ({ data: { before, after } }: MessageEvent<{ before: string; after: string }>) => {
  postMessage(lineHunks(splitLines(before), splitLines(after)));
});
