// Compares two texts beside the page, which goes on meanwhile.

import { type Rest, restHunks } from "./line-diff.ts";

addEventListener("message", ({ data }: MessageEvent<Rest>) => {
  postMessage(restHunks(data));
});
