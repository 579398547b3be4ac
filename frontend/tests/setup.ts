// What all tests begin with: a browser whose user reads English, and the seed of the properties.

import fc from "fast-check";
import { inject } from "./support/navigator.ts";

declare const process: { env: Record<string, string | undefined> };

inject(["en-US"]);
// A failure prints its seed; FAST_CHECK_SEED repeats it.
const seed = Number(process.env.FAST_CHECK_SEED);
if (seed) fc.configureGlobal({ seed });
