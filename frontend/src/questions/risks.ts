// What is known to make a call risky, as its question states it (docs/reference/protocol.md). Nothing is guessed here.

import { html, nothing } from "lit";
import type { ToolCall } from "../server/protocol.ts";
import { type QuestionWord, ask } from "./words.ts";

const WORDS: Readonly<Record<string, QuestionWord>> = {
  deletes: "deletes",
  network: "network",
  no_sandbox: "noSandbox",
  secrets: "secrets",
  starts_programs: "startsPrograms",
};

const SHORT: Readonly<Record<string, QuestionWord>> = {
  ...WORDS,
  network: "networkShort",
  no_sandbox: "noSandboxShort",
  secrets: "secretsShort",
};

/** Return the words of the risks of a call; names that the page does not know are left out. */
export function risksOf(call: ToolCall, table = WORDS): string[] {
  const risks: unknown = call.confirmation_request?.risks;
  if (!Array.isArray(risks)) return [];
  return Object.keys(table).flatMap((name) => {
    const word = table[name];
    return word && risks.includes(name) ? [ask(word)] : [];
  });
}

/** Return the risks of a call as marks; in the row of a list they are short. */
export function riskPills(call: ToolCall, isRow = false) {
  const risks = risksOf(call, isRow ? SHORT : WORDS);
  return risks.length
    ? html`<span class="risks">${risks.map((risk) => html`<span class="pill warn">${risk}</span>`)}</span>`
    : nothing;
}
