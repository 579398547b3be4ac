// The text of an error for the user, in the language of the page.

import { visibleLine } from "../text/safe.ts";
import { ApiError } from "../server/session.ts";
import { type ProblemWord, problemText } from "./words.ts";

/** Maximum number of characters of a server's words that are shown. */
const LONGEST = 500;

/** The words of refusals by their codes: those of the workbench's API, then those of A2A. */
export const BY_CODE: Readonly<Record<string, ProblemWord>> = {
  BAD_REQUEST: "oldPage",
  NOT_FOUND: "notFound",
  WRONG_METHOD: "oldPage",
  TOO_LARGE: "tooLarge",
  TOO_SLOW: "tooSlow",
  TOO_MANY_STREAMS: "tooManyStreams",
  UNAVAILABLE: "unavailable",
  OWNER_ONLY: "ownerOnly",
  PAIRED_ONLY: "pairedOnly",
  WRONG_CODE: "wrongCode",
  TOO_MANY_CODES: "tooManyCodes",
  CODE_WITHDRAWN: "codeWithdrawn",
  TOO_MANY_DEVICES: "tooManyDevices",
  NO_SUCH_DEVICE: "noDevice",
  DEVICES_UNUSABLE: "devicesUnusable",
  NO_SUCH_SESSION: "noSession",
  MESSAGE_GONE: "messageGone",
  MESSAGE_NOT_KEPT: "messageNotKept",
  MESSAGE_NOT_SENT: "messageNotSent",
  NOT_COMPLETED: "notTaken",
  NO_SUCH_PICTURE: "noPicture",
  NOT_DRAWN: "notDrawn",
  NOT_SHOWN: "notShown",
  TRUST_CHANGED: "trustChanged",
  TRUST_NOT_STORED: "trustNotStored",
  NO_NOTIFICATIONS: "noNotifications",
  NOTIFICATIONS_OFF: "notificationsOff",
  NOTIFICATION_SPENT: "notificationSpent",
  COMPANION_ENDED: "companionEnded",
  COMPANION_REFUSED: "companionRefused",
  CHANGED_MEANWHILE: "changedMeanwhile",
  QUESTION_GONE: "questionGone",
  PARSE_ERROR: "oldPage",
  INVALID_REQUEST: "notTaken",
  METHOD_NOT_FOUND: "oldPage",
  INVALID_PARAMS: "notTaken",
  INTERNAL_ERROR: "failed",
  LIMIT_REACHED: "limitReached",
  TASK_NOT_FOUND: "noTask",
  TASK_NOT_CANCELABLE: "notCancelable",
  PUSH_NOTIFICATION_NOT_SUPPORTED: "notFound",
  UNSUPPORTED_OPERATION: "notOpen",
  CONTENT_TYPE_NOT_SUPPORTED: "notSupported",
  INVALID_AGENT_RESPONSE: "failed",
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: "notFound",
  EXTENSION_SUPPORT_REQUIRED: "oldPage",
  VERSION_NOT_SUPPORTED: "oldPage",
};

/** The words of refusals without a code: by the parts that all requests have in common, or by a proxy. */
const BY_STATUS: Readonly<Record<number, ProblemWord>> = {
  401: "notPaired",
  408: "tooSlow",
  413: "tooLarge",
  429: "tooMany",
  500: "failed",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
};

/** Return the text of an error for the user: words of the page, and what the server says where only it knows the reason. */
export function problemOf(error: unknown): string {
  if (!(error instanceof ApiError) || error.status === 0) return problemText("noReach");
  const message = visibleLine(error.message, LONGEST);
  const word = Object.hasOwn(BY_CODE, error.code) ? BY_CODE[error.code] : BY_STATUS[error.status];
  return word ? problemText(word, message) : message || problemText("failed");
}
