// The pages that few visits begin with: each is a chunk of its own, which comes when it is shown.

const PAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  devices: () => import("./pages/devices-page.ts"),
  diff: () => import("./pages/diff-page.ts"),
  files: () => import("./pages/files-page.ts"),
  settings: () => import("./pages/settings-page.ts"),
  tools: () => import("./pages/tools-page.ts"),
  written: () => import("./pages/written-page.ts"),
};

const asked = new Set<string>();

/** Load a page if it is one of them. Called for each drawing: without a connection it is asked for again. */
export function loadPage(name: string): void {
  if (asked.has(name)) return;
  asked.add(name);
  PAGES[name]?.().catch(() => asked.delete(name));
}
