// Messages about questions that were answered on another device, or by another client, while their page was not in view.

import { endWords } from "../inbox/end-words.ts";
import { outcomeText } from "../parts/cards/outcome.ts";
import { PAGE } from "../place.ts";
import { factsOf } from "../questions/question.ts";
import type { Outcome, Waiting } from "../server/reviews.ts";
import { questionPath } from "../routes.ts";
import { visibleLine } from "../text/safe.ts";
import { answererName } from "../server/session.ts";
import type { Question } from "../server/store.ts";
import { type PastQuestion, answeredQuestion } from "../server/task-stream.ts";
import type { Toast } from "./toasts.ts";
import { f } from "./words.ts";

/** Maximum number of questions of one moment whose answers are asked for: further messages would replace the first. */
const MAXIMUM = 3;

const keyOf = ({ task, call }: Question): string => `${task.id}/${call.tool_call_id}`;

/** Return the message about the answer to a question; undefined if it was given here, or by nobody. */
export function toastOf(question: Question, past: PastQuestion, own: string): Toast | undefined {
  if (!past.answer || past.answer.by === own) return undefined;
  const { verb, object } = factsOf(question.call, question.task.workspace);
  const about = visibleLine(`${verb} ${object}`.trim(), 80);
  const text = f("toastAnswered", about, endWords({ call: question.call, ...past }, own));
  return { key: keyOf(question), text, state: "completed", path: PAGE + questionPath(keyOf(question)) };
}

/** Return the message about the end of a review; undefined if it was decided here, or by nobody. */
export function toastOfReview(review: Waiting, outcome: Outcome | undefined, own: string): Toast | undefined {
  if (!outcome || outcome.decision === "closed" || outcome.by === own) return undefined;
  const text = f("toastAnswered", visibleLine(outcome.about, 80), outcomeText(outcome));
  return { key: review.key, text, state: "completed", path: PAGE + questionPath(review.key) };
}

/** Follows what waits, and tells of what was answered elsewhere. */
export class AnsweredElsewhere {
  #questions: readonly Question[] | undefined;
  #reviews: readonly Waiting[] | undefined;

  constructor(private readonly tell: (toast: Toast) => void) {}

  /** Take the questions that wait now; `isInView` says where an answer is seen without a message. */
  takeQuestions(questions: readonly Question[], isInView: (question: Question) => boolean): void {
    const open = new Set(questions.map(keyOf));
    const gone = (this.#questions ?? []).filter((one) => !open.has(keyOf(one)) && !isInView(one));
    this.#questions = questions;
    for (const question of gone.slice(0, MAXIMUM)) void this.#ask(question);
  }

  takeReviews(
    reviews: readonly Waiting[],
    outcomeOf: (key: string) => Outcome | undefined,
    isInView: () => boolean,
  ): void {
    const open = new Set(reviews.map(({ key }) => key));
    const gone = (this.#reviews ?? []).filter(({ key }) => !open.has(key));
    this.#reviews = reviews;
    if (isInView()) return;
    for (const review of gone.slice(0, MAXIMUM)) {
      const toast = toastOfReview(review, outcomeOf(review.key), answererName());
      if (toast) this.tell(toast);
    }
  }

  async #ask(question: Question): Promise<void> {
    const { task, call } = question;
    const past = await answeredQuestion(task.id, task.seq, call.tool_call_id);
    const toast = past && toastOf(question, past, answererName());
    if (toast) this.tell(toast);
  }
}
