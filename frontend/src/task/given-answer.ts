// Who answered a question, where and when, as the row of its call says it. Pure.

import { visibleLine } from "../text/safe.ts";
import { clock, t } from "../words.ts";

export interface GivenAnswer {
  /** The client that has answered, by its own account; empty if it did not say. */
  by: string;
  optionId: string;
  /** Time in milliseconds since 1970. */
  at: number;
  /** Whether the user has changed what was proposed. */
  isEdited: boolean;
}

const LONGEST_NAME = 60;
/** Ids of options that refuse a call, as in isthmus/questions.py. */
const REFUSING: ReadonlySet<string> = new Set([
  "cancel",
  "reject_once",
  "reject-once",
  "reject",
  "deny",
  "denied",
  "abort",
  "decline",
  "no",
]);

type Outcome = "allowed" | "rejected" | "answered";

/** Return what was answered: a permission, or the question that the call itself was. */
function outcomeOf({ optionId }: GivenAnswer, isQuestion: boolean): Outcome {
  if (REFUSING.has(optionId)) return "rejected";
  return isQuestion ? "answered" : "allowed";
}

/** Return the place of an answer in words, such as "in the terminal"; `own` is the name of this device. */
export function placeWords(by: string, own: string): string {
  if (!by) return t("byAnother");
  if (by === own) return t("byHere");
  if (/^(the )?terminal$/i.test(by)) return t("byTerminal");
  if (by === "headless") return t("byProgram");
  if (by === "the task that began it") return t("byParent");
  if (/\bi?phone\b|\bandroid\b/i.test(by)) return t("byPhone");
  if (/\bipad\b/i.test(by)) return t("byTablet");
  return t("byName", visibleLine(by, LONGEST_NAME));
}

/** Return who allowed or rejected a call, where and when. */
export function answerWords(answer: GivenAnswer, isQuestion: boolean, own: string): string {
  const outcome = outcomeOf(answer, isQuestion);
  const place = placeWords(answer.by, own);
  const time = answer.at ? clock(answer.at / 1000) : "";
  if (answer.isEdited && outcome === "allowed") return time ? t("acceptedEditedAt", time) : t("acceptedEdited");
  const word = { allowed: "allowedBy", rejected: "rejectedBy", answered: "answeredBy" } as const;
  const withTime = { allowed: "allowedByAt", rejected: "rejectedByAt", answered: "answeredByAt" } as const;
  return t(time ? withTime[outcome] : word[outcome], place, time);
}
