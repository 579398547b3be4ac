// Which questions the inbox lists: of one agent, of one kind, and with the words that are searched for. Pure.

import { formOf } from "../forms/form.ts";
import { titleOf } from "../forms/form-facts.ts";
import { serverOf } from "../questions/asker-names.ts";
import type { Item } from "./items.ts";

export const KINDS = ["edits", "commands", "forms", "others"] as const;
export type Kind = (typeof KINDS)[number];

/** The value of a filter: `kind:` or `agent:` with a name, or empty. */
export type Filter = string;

export function kindOf({ review, question }: Item): Kind {
  if (review) return review.kind === "review" ? "edits" : "others";
  const request = question?.call.confirmation_request;
  if (!question || !request) return "others";
  if (formOf(question.calls)) return "forms";
  return request.file_edit_details ? "edits" : request.execute_details ? "commands" : "others";
}

/** Return who asks: the server or the agent. */
export function whoOf({ review, question }: Item, agent: string): string {
  return review ? review.agent : (question && serverOf(question.call)) || agent;
}

/** Return the agents and kinds between which there is something to choose. */
export function choicesOf(items: readonly Item[], agent: string): { agents: string[]; kinds: Kind[] } {
  const agents = [...new Set(items.map((item) => whoOf(item, agent)))].sort();
  const found = new Set(items.map(kindOf));
  const kinds = KINDS.filter((kind) => found.has(kind));
  return { agents: agents.length > 1 ? agents : [], kinds: kinds.length > 1 ? kinds : [] };
}

function textOf(item: Item, agent: string, session: string): string {
  const { review, question } = item;
  const request = question?.call.confirmation_request;
  const form = question && formOf(question.calls);
  return [
    whoOf(item, agent),
    session,
    review?.about,
    ...(review?.folders ?? []),
    question?.task.workspace,
    question?.call.tool_name,
    question?.call.description,
    form && titleOf(form),
    request?.file_edit_details?.file_path,
    request?.execute_details?.command,
    request?.mcp_details?.server_name,
    request?.mcp_details?.tool_name,
  ]
    .filter(Boolean)
    .join("\n")
    .toLowerCase();
}

/** Return whether an item is listed; `session` is the title of its session. Each word of the search must occur. */
export function isListed(item: Item, filter: Filter, search: string, agent: string, session: string): boolean {
  const [by, name] = [filter.slice(0, filter.indexOf(":")), filter.slice(filter.indexOf(":") + 1)];
  if (by === "kind" && kindOf(item) !== name) return false;
  if (by === "agent" && whoOf(item, agent) !== name) return false;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const text = textOf(item, agent, session);
  return words.every((word) => text.includes(word));
}
