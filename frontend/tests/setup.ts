// What all tests begin with: a browser whose user reads English, and the seed of the properties.

import fc from "fast-check";
import { afterEach, vi } from "vitest";
import { inject } from "./support/navigator.ts";

declare const process: { env: Record<string, string | undefined> };

inject(["en-US"]);
// Files share their modules: a stub that outlives its test would be what the modules of the next file find.
afterEach(() => {
  vi.unstubAllGlobals();
});
// A failure prints its seed; FAST_CHECK_SEED repeats it.
const seed = Number(process.env.FAST_CHECK_SEED);
if (seed) fc.configureGlobal({ seed });
