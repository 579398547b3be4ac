// The page from its sources, with hot reload, before a server that runs: `make page-dev` (CONTRIBUTING.md).
// The rules of the server for Host, Origin and tokens stay as they are; the page of the development server has no CSP.

import { readFileSync } from "node:fs";
import { type Plugin, type ProxyOptions, defineConfig } from "vite";
import { languages } from "../languages/plugin.ts";

const PORT = Number(process.env.PAGE_DEV_PORT ?? 5173);
const SERVER = process.env.PAGE_DEV_SERVER ?? "";
const TOKEN_FILE = process.env.PAGE_DEV_TOKEN_FILE ?? "";

if (!/^https?:\/\//.test(SERVER))
  throw new Error(
    `PAGE_DEV_SERVER is ${JSON.stringify(SERVER)}: expected the URL of a server that runs, such as http://127.0.0.1:8080`,
  );
const server = new URL(SERVER);

/** The origins of this server. A request of another page keeps its origin, so that the server behind refuses it. */
const OWN = new Set([`http://127.0.0.1:${PORT}`, `http://localhost:${PORT}`]);

const proxy: ProxyOptions = {
  target: server.origin,
  changeOrigin: true,
  configure: (behind) => {
    behind.on("proxyReq", (request) => {
      const origin = request.getHeader("origin");
      if (typeof origin === "string" && OWN.has(origin)) request.setHeader("origin", server.origin);
    });
  },
};

/** Prints a link that lets one browser in, if the file with a token of the server is named; the token stays here. */
function entryLink(): Plugin {
  return {
    name: "entry-link",
    configureServer: ({ httpServer, config }) => {
      httpServer?.once("listening", () => {
        void codeOf().then(
          (code) => config.logger.info(`  Open http://127.0.0.1:${PORT}/ui/${code && `#code=${code}`}`),
          (error: unknown) => config.logger.error(`no code from ${server.origin}: ${String(error)}`),
        );
      });
    },
  };
}

async function codeOf(): Promise<string> {
  if (!TOKEN_FILE) return "";
  const headers = { Authorization: `Bearer ${readFileSync(TOKEN_FILE, "utf8").trim()}` };
  const response = await fetch(new URL("/ui/api/codes", server), { method: "POST", headers });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return ((await response.json()) as { code: string }).code;
}

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  base: "/ui/",
  plugins: [languages(), entryLink()],
  server: {
    host: "127.0.0.1",
    port: PORT,
    strictPort: true,
    // No page of another origin reads anything.
    cors: false,
    proxy: { "^/ui/api/": proxy, "^/(?!ui/)": proxy },
  },
});
