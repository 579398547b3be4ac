// How a question ended, in words.

import { formOf } from "../forms/form.ts";
import { ask } from "../questions/words.ts";
import type { PastQuestion } from "../server/task-stream.ts";
import { answerWords } from "../task/given-answer.ts";

/** Return how a question ended, in one sentence. */
export function endWords({ call, answer }: PastQuestion, own: string): string {
  if (!answer) return ask("endedUnanswered");
  const proposed = call?.confirmation_request?.file_edit_details?.new_content;
  const isEdited = answer.newContent !== undefined && proposed !== undefined && answer.newContent !== proposed;
  const words = answerWords({ ...answer, isEdited }, call !== undefined && formOf([call]) !== undefined, own);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
