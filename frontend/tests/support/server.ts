// A server as the page sees it through `fetch`: what it was asked, and what it answers.

import { vi } from "vitest";

export interface Asked {
  method: string;
  path: string;
  headers: Headers;
  body: unknown;
}

/** Answer each request with what `answer` returns for it; a thrown error is a server that is not reached. */
export function serve(answer: (asked: Asked, number: number) => Response): Asked[] {
  const all: Asked[] = [];
  vi.stubGlobal("localStorage", { getItem: () => "secret" });
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws is a rejection
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    const asked: Asked = {
      method: options.method ?? "GET",
      path: address,
      headers: new Headers(options.headers),
      body: typeof options.body === "string" ? JSON.parse(options.body) : undefined,
    };
    all.push(asked);
    return answer(asked, all.length);
  });
  return all;
}

export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status });
}

/** Return a stream of server-sent events, which ends after them; their numbers begin at 1. */
export function stream(...items: unknown[]): Response {
  return new Response(items.map((item, at) => `id: ${at + 1}\ndata: ${JSON.stringify(item)}\n\n`).join(""));
}
