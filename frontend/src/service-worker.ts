// The service worker: keeps the shell of the page for times without a connection. It is a script of its own, sw.js.
//
// The page itself comes from the server whenever the server answers, so that an old page never meets a newer server.
// Only files whose names contain a hash of their content are answered from the cache. Requests with a token, the API and
// A2A are never touched.

import {
  type NotificationData,
  type Place,
  type Shown,
  answeredOf,
  endOf,
  keyOf,
  kindOf,
  questionOf,
  summaryOf,
  summaryTag,
  tagOf,
} from "./push/notification.ts";

// Replaced by the build (vite.config.ts): a number of this bundle, and the names of the files that the page needs to start.
declare const __BUNDLE__: string;
declare const __SHELL__: string[];

interface Extendable extends Event {
  waitUntil(done: Promise<unknown>): void;
}
interface Fetching extends Extendable {
  request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Pushed extends Extendable {
  data: { json(): unknown } | null;
}
interface Clicked extends Extendable {
  notification: Notification;
  action: string;
}
interface PageWindow {
  url: string;
  visibilityState: string;
  postMessage(message: unknown): void;
  focus(): Promise<unknown>;
}
interface WindowClients {
  matchAll(options: object): Promise<PageWindow[]>;
  openWindow(url: string): Promise<unknown>;
}
interface Worker {
  addEventListener(kind: string, handler: (event: never) => void): void;
}

const worker = self as unknown as Worker;
/** Path of the page: this script is in its folder. A proxy may have several servers at one origin, each below a path. */
const PAGE = new URL("./", location.href).pathname;
const OWN = PAGE === "/ui/" ? "isthmus-shell-" : `isthmus-shell:${PAGE}-`;
const CACHE = OWN + __BUNDLE__;

worker.addEventListener("install", (event: Extendable) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([PAGE, ...__SHELL__.map((name) => PAGE + name)])));
});

worker.addEventListener("activate", (event: Extendable) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) =>
        Promise.all(names.filter((name) => name.startsWith(OWN) && name !== CACHE).map((name) => caches.delete(name))),
      ),
  );
});

worker.addEventListener("fetch", (event: Fetching) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || request.headers.has("Authorization")) return;
  if (request.mode === "navigate" && url.pathname.startsWith(PAGE) && !url.pathname.startsWith(`${PAGE}api/`)) {
    event.respondWith(pageOf(request));
  } else if (url.pathname.startsWith(`${PAGE}assets/`)) {
    event.respondWith(fixedFile(request));
  }
});

// A notification says what is asked, without content of files. Only a command that it shows whole can be answered in it,
// and only on a device whose user wants that; a token in the message is all that answers.
worker.addEventListener("push", (event: Pushed) => {
  let message: Record<string, unknown> = {};
  try {
    message = (event.data?.json() ?? {}) as Record<string, unknown>;
  } catch {
    // A message of another form: that a question waits is still true.
  }
  event.waitUntil(tell(message));
});

worker.addEventListener("notificationclick", (event: Clicked) => {
  const { notification, action } = event;
  const data = notification.data as NotificationData | null;
  const token = action === "allow" || action === "reject" ? data?.answers[action] : undefined;
  if (data && token) {
    event.waitUntil(answer(data, token));
    return;
  }
  notification.close();
  event.waitUntil(open(data?.key ? `${PAGE}question/${encodeURIComponent(data.key)}` : PAGE));
});

/** Maximum time in milliseconds for an answer to be stored. */
const ANSWER_MS = 20_000;

function registration(): ServiceWorkerRegistration {
  return (self as unknown as { registration: ServiceWorkerRegistration }).registration;
}

function windows(): Promise<PageWindow[]> {
  const { clients } = self as unknown as { clients: WindowClients };
  return clients
    .matchAll({ type: "window", includeUncontrolled: true })
    .then((all) => all.filter((each) => new URL(each.url).pathname.startsWith(PAGE)));
}

function here(): Place {
  const room = (Notification as unknown as { maxActions?: number }).maxActions ?? 0;
  return { page: PAGE, language: navigator.language, room, now: Date.now() };
}

async function show({ title, options }: Shown): Promise<void> {
  await registration().showNotification(title, options);
}

/** Show what the server tells. Each message must show something, unless the page is in view. */
async function tell(message: Record<string, unknown>): Promise<void> {
  const kind = kindOf(message);
  if (kind === "question") return show(questionOf(message, here()));
  const shown = await registration().getNotifications();
  const summary = shown.find((each) => each.tag === summaryTag(PAGE));
  if (kind === "many") {
    await show(summaryOf(message, here()));
    for (const each of shown) if (each !== summary && (each.data as NotificationData | null)?.key) each.close();
    return;
  }
  const own = shown.find((each) => each.tag === tagOf(keyOf(message), PAGE));
  if ((await windows()).some((each) => each.visibilityState === "visible")) {
    own?.close();
    if (summary && !message.waiting) summary.close();
    else if (summary) await show(summaryOf(message, here()));
  } else if (summary && !own) await show(summaryOf(message, here()));
  else await show(endOf(message, here()));
}

/** Send the answer of a button, and say in its notification what became of it. */
async function answer(data: NotificationData, token: string): Promise<void> {
  let answered: { status: number; body: Record<string, unknown> } | undefined;
  try {
    const response = await fetch(`${PAGE}api/push/answer`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    answered = { status: response.status, body: (await response.json()) as Record<string, unknown> };
  } catch {
    // The notification says that nothing was sent; pressed again, the same token is the same answer.
  }
  await show(answeredOf(data, answered, here()));
}

/** Show an address of the page in a window that is open, or in a new one. */
async function open(path: string): Promise<void> {
  const { clients } = self as unknown as { clients: WindowClients };
  const [found] = await windows();
  if (!found) {
    await clients.openWindow(path);
    return;
  }
  found.postMessage({ show: path });
  await found.focus().catch(() => undefined);
}

/** The server's page; the kept one only if no server answers. */
async function pageOf(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    const kept = await caches.open(CACHE).then((cache) => cache.match(PAGE));
    if (kept) return kept;
    throw error;
  }
}

async function fixedFile(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request.url);
  if (kept) return kept;
  const found = await fetch(request);
  if (found.ok && found.type === "basic") await cache.put(request.url, found.clone());
  return found;
}
