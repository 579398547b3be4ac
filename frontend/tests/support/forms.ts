// Calls that ask, as the server sends them.

import type { ToolCall } from "../../src/server/protocol.ts";
import { call } from "./events.ts";

export const CHOICE = { question: "Which zone?", type: "choice", options: [{ label: "Harbour" }, { label: "UTC" }] };
export const SEVERAL = { ...CHOICE, question: "Which harbours?", multiSelect: true };
export const TEXT = { question: "Which name?", type: "text", placeholder: "a name" };
export const YES_NO = { question: "Write over it?", type: "yesno" };

const DOCUMENT = { file_name: "agent-question.json", file_path: "/w/agent-question.json", new_content: "{}" };

/** Return a call of ask_user with one question. */
export function asked(id: string, question: { type: string; question: string; multiSelect?: boolean }): ToolCall {
  const isDocument = question.type === "text" || question.multiSelect === true;
  const choices = ["Yes", "No"].map((name, at) => ({ id: `choice_${at + 1}`, name }));
  const send = isDocument ? [{ id: "proceed_once", name: "Send" }] : [];
  const options = [...(question.type === "text" ? [] : choices), ...send, { id: "cancel", name: "None of these" }];
  return call(id, "PENDING", {
    tool_name: "ask_user",
    input_parameters: { questions: [question] },
    confirmation_request: {
      options,
      ...(isDocument ? { file_edit_details: DOCUMENT } : { generic_details: { description: question.question } }),
      ...(question.type === "choice" && !isDocument ? { words_option: "words" } : {}),
    },
  });
}

/** Return a question of the MCP server tickets. */
export function elicited(id: string, about: Record<string, unknown>, isDirect = false): ToolCall {
  const refusals = ["decline", "cancel"].map((name) => ({ id: name, name }));
  const answers = isDirect ? ["choice-1", "choice-2", "yes", "no"] : ["accept"];
  return call(id, "PENDING", {
    tool_name: "elicitation",
    input_parameters: { server: "tickets", mode: "form", message: "Which release?", ...about },
    confirmation_request: {
      options: [...answers.map((name) => ({ id: name, name })), ...refusals],
      ...(isDirect ? { generic_details: { description: "?" } } : { file_edit_details: DOCUMENT }),
    },
  });
}
