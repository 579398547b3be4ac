import { createHash } from "node:crypto";
import { type Plugin, type Rolldown, defineConfig } from "vite";
import { languages } from "./languages/plugin.ts";

const WORKER = "sw.js";
/** Modules that go into the first chunk if the page imports them at once: all but the entries and the worker's. */
const PART = /\/(?:node_modules|src)\/(?!(?:main|service-worker)\.ts$|push\/)|preload-helper/;
/** Modules whose chunks are kept for times without a connection, although they come later. */
const KEPT = /\/src\/(?:pages|parts)\/|virtual:languages\//;

/** Return the names of chunks with those of all that they import at once. */
function withImports(names: readonly string[], bundle: Rolldown.OutputBundle): string[] {
  const found = new Set<string>();
  for (const open = [...names]; open.length;) {
    const name = open.pop() ?? "";
    const chunk = bundle[name];
    if (found.has(name) || chunk?.type !== "chunk") continue;
    found.add(name);
    open.push(...chunk.imports);
  }
  return [...found];
}

/** Tells the service worker which files the page needs to start, and gives each bundle a number of its own. */
function shellOfPage(): Plugin {
  return {
    name: "shell-of-page",
    enforce: "post",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const worker = bundle[WORKER];
      const entry = files.find((file) => file.type === "chunk" && file.isEntry && file.fileName !== WORKER);
      if (worker?.type !== "chunk" || entry?.type !== "chunk")
        throw new Error("expected the page and its service worker");
      if (worker.imports.length)
        throw new Error(`${WORKER} must not share code with the page: ${worker.imports.join(", ")}`);
      const styles = files.filter((file) => file.type === "asset" && file.fileName.endsWith(".css"));
      // The pages and cards that come later are kept, too: they are there without a connection.
      const pages = files.filter((file) => file.type === "chunk" && KEPT.test(file.facadeModuleId ?? ""));
      const scripts = withImports([entry.fileName, ...pages.map((file) => file.fileName)], bundle);
      const shell = [...scripts, ...styles.map((file) => file.fileName)].sort();
      const names = files
        .map((file) => file.fileName)
        .sort()
        .join("\n");
      const number = createHash("sha256").update(names).digest("hex").slice(0, 16);
      worker.code = worker.code
        .replace(/__BUNDLE__/g, JSON.stringify(number))
        .replace(/__SHELL__/g, JSON.stringify(shell));
    },
  };
}

// The page is one entry; what few visits begin with (src/later-pages.ts) comes when it is shown, and the editor of diffs
// with the first diff.
export default defineConfig({
  base: "/ui/",
  // Only the page itself has this path in it, and a server below another path writes its own there; scripts find their files.
  experimental: { renderBuiltUrl: (_name, { hostType }) => (hostType === "html" ? undefined : { relative: true }) },
  plugins: [languages(), shellOfPage()],
  build: {
    outDir: "../src/isthmus/web/ui",
    emptyOutDir: true,
    target: "es2022",
    // The first ones with light-dark(): the style sheet goes out as it is written.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: true,
    rolldownOptions: {
      input: { index: "index.html", worker: "src/service-worker.ts" },
      output: {
        // The page waits for its texts, so its parts are not put together without being told.
        codeSplitting: { groups: [{ name: "page", tags: ["$initial"], test: PART }] },
        entryFileNames: (chunk) => (chunk.name === "worker" ? WORKER : "assets/[name]-[hash].js"),
      },
    },
    // The licences of what is bundled go with it.
    license: { fileName: "licenses.md" },
  },
});
