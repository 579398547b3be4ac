// The kinds of answers: as an agent states them, otherwise by the ids that the extension of A2A and ACP name.

import type { ConfirmationOption } from "../server/protocol.ts";

export type OptionKind = "allow_once" | "allow_always" | "reject_once" | "reject_always" | "";

const STATED: ReadonlySet<string> = new Set(["allow_once", "allow_always", "reject_once", "reject_always"]);
const ONCE = /^(proceed_once|allow[-_]once)$/;
const LASTING = /^(proceed|allow)[-_]always/;
const REFUSAL = /^(cancel|reject)/;

/** Return what an answer does; empty for one that permits and refuses nothing, such as a choice of a question. */
export function kindOf({ id, kind }: ConfirmationOption): OptionKind {
  if (kind !== undefined && STATED.has(kind)) return kind as OptionKind;
  if (ONCE.test(id)) return "allow_once";
  if (LASTING.test(id)) return "allow_always";
  if (REFUSAL.test(id)) return id.endsWith("always") ? "reject_always" : "reject_once";
  return "";
}

export function isOnce(option: ConfirmationOption): boolean {
  return kindOf(option) === "allow_once";
}

export function isRefusal(option: ConfirmationOption): boolean {
  return kindOf(option).startsWith("reject");
}
