import type { ConfirmationOption } from "./protocol.ts";

export function isOnce(option: ConfirmationOption): boolean {
  return option.id === "proceed_once" || option.id === "allow_once";
}

export function isRefusal(option: ConfirmationOption): boolean {
  return /^(cancel|reject)/.test(option.id);
}
