// The pages beside the inbox, and the cards that ask: each is a chunk of its own, which comes when it is shown.

const PAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  cards: () => import("./parts/cards/cards.ts"),
  devices: () => import("./pages/devices-page.ts"),
  diff: () => import("./pages/diff-page.ts"),
  files: () => import("./pages/files-page.ts"),
  keys: () => import("./parts/keys-list.ts"),
  palette: () => import("./parts/palette.ts"),
  history: () => import("./pages/history-page.ts"),
  new: () => import("./pages/new-page.ts"),
  settings: () => import("./pages/settings-page.ts"),
  task: () => import("./pages/task-page.ts"),
  tools: () => import("./pages/tools-page.ts"),
  written: () => import("./pages/written-page.ts"),
};

const asked = new Set<string>();
const come = new Set<string>();

/**
 * Return whether a page is there. If not, load it, and call `then` when it has come. Called for each drawing: without a
 * connection it is asked for again.
 */
export function loadPage(name: string, then: () => void): boolean {
  const load = PAGES[name];
  if (!load || come.has(name)) return true;
  if (asked.has(name)) return false;
  asked.add(name);
  load().then(
    () => {
      come.add(name);
      then();
    },
    () => asked.delete(name),
  );
  return false;
}
