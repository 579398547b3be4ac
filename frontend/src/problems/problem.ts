// The text of an error for the user.

import { visibleLine } from "../text/safe.ts";
import { ApiError } from "../server/session.ts";
import { t } from "../words.ts";

/** Maximum number of characters of a server's words that are shown. */
const LONGEST = 500;

/** Return the text of an error for the user. */
export function problemOf(error: unknown): string {
  return error instanceof ApiError && error.status !== 0 ? visibleLine(error.message, LONGEST) : t("noReach");
}
