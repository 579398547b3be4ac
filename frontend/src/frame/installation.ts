// The page as an installed program: its service worker, the browser's offer to install it, and newer pages of the server.

import { PAGE } from "../place.ts";

interface InstallEvent extends Event {
  prompt(): Promise<unknown>;
}

let offered: InstallEvent | undefined;
const RELOADED = "isthmus.reloaded";
/** Path of the script with which this page began. */
const ENTRY = new URL(document.querySelector<HTMLScriptElement>("script[type=module][src]")?.src ?? location.href)
  .pathname;

/** Whether the browser allows what needs an encrypted connection: to install the page, and notifications. */
export const isSecure = window.isSecureContext && "serviceWorker" in navigator;

export function isInstalled(): boolean {
  return matchMedia("(display-mode: standalone)").matches;
}

/** Begin with the page: keep its shell, and note when the browser offers to install it. */
export function beginInstallation(onOffer: () => void): void {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault();
    offered = event as InstallEvent;
    onOffer();
  });
  addEventListener("appinstalled", () => {
    offered = undefined;
    onOffer();
  });
  if (isSecure && import.meta.env.PROD)
    void navigator.serviceWorker.register(`${PAGE}sw.js`, { updateViaCache: "none" }).catch(() => undefined);
}

export function canInstall(): boolean {
  return offered !== undefined;
}

export async function install(): Promise<void> {
  const now = offered;
  offered = undefined;
  await now?.prompt();
}

/** Return whether the server has another page than this one; `entry` is the path of the script that its page begins with. */
export function isOlderThan(entry: string): boolean {
  return entry !== "" && import.meta.env.PROD && ENTRY !== entry;
}

/** Load the server's page, but not twice for the same one: a cache on the way may hold the old page. Return false then. */
export function reloadFor(entry: string): boolean {
  if (sessionStorage.getItem(RELOADED) === entry) return false;
  sessionStorage.setItem(RELOADED, entry);
  location.reload();
  return true;
}
