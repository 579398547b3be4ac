// The answers of a form, and what is sent for each of its calls. Pure.

import type { Reply } from "../client.ts";
import { isOnce, isRefusal } from "../questions/options.ts";
import type { ConfirmationOption, ToolCall } from "../server/protocol.ts";
import { type Answer, type Answers, type Field, type Form, optionOf } from "./form.ts";

/** Return the answer of a field: what was chosen or typed, otherwise what the asker proposes. */
export function answerOf(field: Field, answers: Answers): Answer {
  return answers.get(field.key) ?? field.preset;
}

/** Return the words of an answer, without blanks around them where they stand for a value. */
export function wordsOf(field: Field, answer: Answer): string {
  const isText = field.kind === "text" && !field.format;
  return isText ? (answer.text.trim() ? answer.text : "") : answer.text.trim();
}

/** Return whether a field has an answer, valid or not. */
export function isAnswered(field: Field, answer: Answer): boolean {
  if (field.kind === "choices" || field.kind === "choice" || field.kind === "boolean")
    return answer.chosen.length > 0 || (answer.isOwn && wordsOf(field, answer) !== "");
  return wordsOf(field, answer) !== "";
}

/** Return what is sent for each of these calls. Throws if the form has no option for it. */
export function repliesOf(form: Form, answers: Answers, open: ReadonlySet<string>): Reply[] {
  return form.calls
    .filter((call) => open.has(call.tool_call_id))
    .map((call) => {
      const fields = form.fields.filter((field) => field.callId === call.tool_call_id);
      return form.is === "questions" ? askedReply(call, fields, answers) : elicitedReply(call, fields, answers);
    });
}

function askedReply(call: ToolCall, [field]: Field[], answers: Answers): Reply {
  const { options = [], words_option: words } = call.confirmation_request ?? {};
  const callId = call.tool_call_id;
  if (!field) throw new Error(`expected a question in the call ${callId}`);
  const answer = answerOf(field, answers);
  const own = wordsOf(field, answer);
  if (field.kind === "text" || field.kind === "choices") {
    const several = answer.isOwn && own ? [...answer.chosen, own] : answer.chosen;
    const value = field.kind === "text" ? own || null : several.length ? several : null;
    return { callId, optionId: options.find(isOnce)?.id ?? "proceed_once", content: document({ answer: value }) };
  }
  if (answer.isOwn && words !== undefined) return { callId, optionId: words, content: own };
  const labels = field.kind === "boolean" ? ["Yes", "No"] : field.choices.map((choice) => choice.value);
  const at = field.choices.findIndex((choice) => choice.value === answer.chosen[0]);
  const option = optionOf(options, labels, at);
  if (!option) throw new Error(`expected an option of the call ${callId} for ${answer.chosen[0]}`);
  return { callId, optionId: option.id, content: undefined };
}

function elicitedReply(call: ToolCall, fields: Field[], answers: Answers): Reply {
  const callId = call.tool_call_id;
  const [first] = fields;
  if (call.confirmation_request?.file_edit_details) {
    const members = fields.map((field) => `${JSON.stringify(field.name)}: ${valueOf(field, answerOf(field, answers))}`);
    return { callId, optionId: "accept", content: `{\n  ${members.join(",\n  ")}\n}\n` };
  }
  if (!first) return { callId, optionId: "accept", content: undefined };
  const [chosen = ""] = answerOf(first, answers).chosen;
  const at = first.choices.findIndex((choice) => choice.value === chosen);
  return { callId, optionId: first.kind === "boolean" ? chosen : `choice-${at + 1}`, content: undefined };
}

/** Return a valid answer as JSON; a number as it was typed, since its digits may be more than a number here can have. */
export function valueOf(field: Field, answer: Answer): string {
  if (!isAnswered(field, answer)) return "null";
  switch (field.kind) {
    case "boolean":
      return String(answer.chosen[0] === "yes");
    case "choice":
      return JSON.stringify(answer.chosen[0]);
    case "choices":
      return JSON.stringify(answer.chosen);
    case "number":
    case "integer":
      return wordsOf(field, answer)
        .replace(/^\+/, "")
        .replace(/^(-?)0+(?=\d)/, "$1");
    case "text":
      return JSON.stringify(wordsOf(field, answer));
  }
}

function document(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Return the option by which a call goes on without an answer; undefined if it has none. */
export function declineOf(call: ToolCall): ConfirmationOption | undefined {
  const options = call.confirmation_request?.options ?? [];
  return options.find((option) => option.id === "decline") ?? options.find(isRefusal);
}

/** Return the option that ends the call of a server; undefined if the only other one is to go on without an answer. */
export function cancelOf(call: ToolCall): ConfirmationOption | undefined {
  const option = call.confirmation_request?.options.find((one) => one.id === "cancel");
  return option && option !== declineOf(call) ? option : undefined;
}
