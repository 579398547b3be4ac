// The service worker: keeps the shell of the page for times without a connection. It is a script of its own, sw.js.
//
// The page itself comes from the server whenever the server answers, so that an old page never meets a newer server.
// Only files whose names contain a hash of their content are answered from the cache. Requests with a token, the API and
// A2A are never touched.

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
}
interface WindowClients {
  matchAll(options: object): Promise<{ url: string; postMessage(message: unknown): void; focus(): Promise<unknown> }[]>;
  openWindow(url: string): Promise<unknown>;
}
interface Worker extends EventTarget {
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

// A notification says who asks, and nothing of what is asked: that stays behind the token of the page.
worker.addEventListener("push", (event: Pushed) => {
  let agent = "";
  try {
    const told = (event.data?.json() as { agent?: unknown } | undefined)?.agent;
    if (typeof told === "string")
      agent = told
        .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ")
        .trim()
        .slice(0, 60);
  } catch {
    // A message of another form: that a question waits is still true.
  }
  const isChinese = navigator.language.toLowerCase().startsWith("zh");
  event.waitUntil(
    registration().showNotification(agent || "Isthmus", {
      body: isChinese ? "有一个问题等待您处理" : "A question waits for you",
      tag: "question",
      icon: `${PAGE}icon-192.png`,
    }),
  );
});

worker.addEventListener("notificationclick", (event: Clicked) => {
  event.notification.close();
  event.waitUntil(showInbox());
});

function registration(): ServiceWorkerRegistration {
  return (self as unknown as { registration: ServiceWorkerRegistration }).registration;
}

/** Show the inbox in a window that is open, or in a new one. */
async function showInbox(): Promise<void> {
  const { clients } = self as unknown as { clients: WindowClients };
  const windows = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = windows.find((each) => new URL(each.url).pathname.startsWith(PAGE));
  if (!open) {
    await clients.openWindow(PAGE);
    return;
  }
  open.postMessage({ show: PAGE });
  await open.focus().catch(() => undefined);
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
