// How a review or a question of a companion ended, in words.

import type { Outcome } from "../../server/reviews.ts";
import { visibleLine } from "../../text/safe.ts";
import { t } from "../../words.ts";

export function outcomeText(outcome: Outcome | undefined): string {
  if (!outcome) return t("outcomeGone");
  const by = visibleLine(outcome.by, 80) || t("someone");
  const word = {
    accepted: "outcomeAccepted",
    rejected: "outcomeRejected",
    closed: "outcomeClosed",
    yes: "outcomeYes",
    session: "outcomeYes",
    no: "outcomeNo",
  } as const;
  const problem = outcome.problem ? ` (${visibleLine(outcome.problem)})` : "";
  return t(word[outcome.decision] ?? "outcomeClosed", by) + problem;
}
