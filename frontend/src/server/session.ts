// The device token of this browser: got once for a code, kept in the storage of this origin, sent as a header.

import { PAGE, SERVER } from "../place.ts";

/** Servers that share an origin have a token each. */
const KEY = SERVER === "/" ? "isthmus.token" : `isthmus.token:${SERVER}`;

export interface Session {
  user: string;
  device: { id: string; label: string; expires: number } | null;
  /** Number of the paired devices of the user; a server of an earlier version does not say it. */
  devices?: number;
  agent: string;
  version: string;
  workspaces: string[];
  /** Whether the server speaks A2A; a companion does not. */
  tasks: boolean;
  /** Whether reviews of companions are shown. */
  reviews: boolean;
  /** Path of the script with which the server's page begins. */
  entry: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly body: Record<string, unknown> = {},
    /** Reason for programs, as the server names it; empty where the status says it. */
    readonly code = "",
  ) {
    super(message);
  }
}

/** Return the refusal in an answer: of the workbench's API, of A2A over HTTP and JSON-RPC, or of a proxy. */
export function refusalIn(status: number, statusText: string, answer: unknown): ApiError {
  const body = isObject(answer) ? answer : {};
  const { error, code } = body;
  if (!isObject(error)) return new ApiError(status, textOf(error) || statusText, body, textOf(code));
  // A2A 1.0 has the reason in its details: of an error over HTTP, or in the data of one in JSON-RPC.
  const details = error.details ?? error.data;
  const reasons = Array.isArray(details) ? details.filter(isObject).map(({ reason }) => textOf(reason)) : [];
  return new ApiError(status, textOf(error.message) || statusText, body, reasons.find(Boolean) ?? "");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Return whether the server refused something because it does not have it, or not for this user. */
export function isNotThere(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 403);
}

export function token(): string {
  return localStorage.getItem(KEY) ?? "";
}

/** Name of the comments that were not sent yet (`diff/comment-drafts.ts`). */
export const COMMENTS = "isthmus.comments";

/** Forget the token, and what its user has typed. */
export function forget(): void {
  localStorage.removeItem(KEY);
  localStorage.removeItem(COMMENTS);
}

/** Return the code in the address, and remove it from there and from the history. */
export function takeCode(): string {
  const found = new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
  if (found) history.replaceState(history.state, "", location.pathname + location.search);
  return found;
}

/** Call the API beside A2A. Throws an ApiError, of status 0 if the server was not reached. */
export async function api<T>(method: string, name: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`${PAGE}api/${name}`, {
      method,
      headers: {
        ...(token() ? { Authorization: `Bearer ${token()}` } : {}),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: "no-store",
      credentials: "omit",
    });
  } catch {
    throw new ApiError(0, "");
  }
  const value = (await response.json().catch(() => ({}))) as T;
  if (!response.ok) throw refusalIn(response.status, response.statusText, value);
  return value;
}

/** Pair this browser by a code. */
export async function pair(code: string): Promise<void> {
  const paired = await api<{ token: string }>("POST", "pair", { code, device: deviceName() });
  localStorage.setItem(KEY, paired.token);
}

let label = "";

/** Take the name that the server has given this device, so that an answer names it and no other one of the same kind. */
export function knowDevice(session: Session): void {
  label = session.device?.label ?? "";
}

/** Return the name of this device in answers. */
export function answererName(): string {
  return label || deviceName();
}

export function deviceName(): string {
  const agent = navigator.userAgent;
  const browser =
    /Firefox|Edg|OPR|Chrome|Safari/.exec(agent)?.[0].replace("Edg", "Edge").replace("OPR", "Opera") ?? "Browser";
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent)?.[0].replace("Mac OS X", "macOS") ?? "";
  return system ? `${browser} on ${system}` : browser;
}
