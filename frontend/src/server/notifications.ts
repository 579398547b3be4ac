// The browser's notifications: subscribed with the server's key, and stored there with this device.

import { isSecure } from "../frame/installation.ts";
import { LANGUAGE } from "../language.ts";
import { api } from "./session.ts";

export interface PushState {
  /** The server's key; null if it cannot notify, for the `reason`. */
  key: string | null;
  reason: string | null;
  /** The URL to which the server sends for this device; null if it sends nothing. */
  endpoint: string | null;
  /** Whether its notifications may have buttons that answer. */
  answers: boolean;
}

/** Whether this browser can receive notifications here. */
export const canNotify = isSecure && "PushManager" in globalThis && "Notification" in globalThis;

export function pushState(): Promise<PushState> {
  return api<PushState>("GET", "push");
}

/** Ask the user and the browser, and tell the server. Returns false if the user forbids notifications. */
export async function subscribe(key: string): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") return false;
  const { pushManager } = await navigator.serviceWorker.ready;
  const old = await pushManager.getSubscription();
  if (old && !isSame(old.options.applicationServerKey, key)) await old.unsubscribe();
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = made.toJSON();
  await api("PUT", "push", { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, language: LANGUAGE });
  return true;
}

/** Let notifications of this device have buttons that answer, or not. */
export async function letAnswer(answers: boolean): Promise<void> {
  await api("POST", "push", { answers });
}

export async function unsubscribe(): Promise<void> {
  await api("DELETE", "push");
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe();
}

function isSame(used: ArrayBuffer | null, key: string): boolean {
  if (!used) return false;
  const text = btoa(String.fromCharCode(...new Uint8Array(used)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "") === key;
}
