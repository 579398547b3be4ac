// Where the user was on the pages of this visit, for the way back: what they were scrolled to, and what had the focus.

/** What a list shows whose items have no fixed place: an item, and how far below the upper edge it is in pixels. */
export interface Reading {
  key: string;
  below: number;
}

/** A list that knows by itself what it shows. */
export interface ReadList extends HTMLElement {
  /** What is read; undefined while the end is followed. */
  readonly reading: Reading | undefined;
  /** Show again what was read; return whether it is there already. */
  resume(reading: Reading): boolean;
}

/** A page as it was left. */
interface Where {
  /** Of each part that scrolls, in the order of the document. */
  scrolls: readonly (number | Reading | undefined)[];
  /** Selector of what had the focus; empty if the page had it. */
  focus: string;
}

/** The content of a page may come this late; in ms. */
const PATIENCE_MS = 5_000;
const PARTS = "main .scroll";

let newest = Date.now();
/** Number of the entry of the history that is shown. */
let current = 0;
let wanted: Where | undefined;
const left = new Map<number, Where>();

/** Number the entry with which the page begins, and listen to what the user does. */
export function beginVisits(): void {
  current = numberIn(history.state) || ++newest;
  history.replaceState({ visit: current }, "");
  // The user goes on: nothing is moved any more.
  const stop = (): void => {
    wanted = undefined;
  };
  for (const kind of ["wheel", "pointerdown", "keydown"])
    addEventListener(kind, stop, { capture: true, passive: true });
}

/** Add an entry to the history. `by` is the link that was followed, which has no focus in every browser. */
export function enter(path: string, by?: Element): void {
  leave(by);
  current = ++newest;
  history.pushState({ visit: current }, "", path);
}

/** Give the entry of the history another address. */
export function rename(path: string): void {
  history.replaceState({ visit: current }, "", path);
}

/** Take over that the browser has gone to another entry of the history; what was shown there comes back as it was. */
export function comeBack(state: unknown): void {
  leave();
  current = numberIn(state);
  const where = left.get(current);
  if (!where) return;
  wanted = where;
  const end = performance.now() + PATIENCE_MS;
  const look = (): void => {
    if (wanted !== where) return;
    if (isRestored(where) || performance.now() > end) wanted = undefined;
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Tell whether a page is being shown as it was left. */
export function isBack(): boolean {
  return wanted !== undefined;
}

function leave(by: Element | null = document.activeElement): void {
  wanted = undefined;
  const scrolls = [...document.querySelectorAll<HTMLElement>(PARTS)].map((part) =>
    isReadList(part) ? part.reading : part.scrollTop,
  );
  left.set(current, { scrolls, focus: selectorOf(by) });
}

function isRestored({ scrolls, focus }: Where): boolean {
  const parts = document.querySelectorAll<HTMLElement>(PARTS);
  let isWhole = parts.length >= scrolls.length;
  scrolls.forEach((scroll, at) => {
    const part = parts[at];
    if (!part || !scroll) return;
    if (typeof scroll === "number") {
      part.scrollTop = scroll;
      isWhole &&= part.scrollTop >= scroll - 1;
    } else isWhole &&= isReadList(part) && part.resume(scroll);
  });
  if (!focus) return isWhole;
  const found = document.querySelector<HTMLElement>(focus);
  if (!found?.checkVisibility()) return false;
  // What the user has chosen meanwhile keeps it.
  const active = document.activeElement;
  if (active === null || active === document.body || /^H\d$/.test(active.tagName)) found.focus({ preventScroll: true });
  return isWhole;
}

/** Return a selector by which an element is found again after its page was drawn anew; empty if there is none. */
function selectorOf(element: Element | null): string {
  if (!element?.closest("main")) return "";
  const href = element.getAttribute("href");
  if (element.tagName === "A" && href) return `main a[href="${CSS.escape(href)}"]`;
  const key = element.closest<HTMLElement>("[data-key]")?.dataset.key;
  return key ? `main [data-key="${CSS.escape(key)}"] ${element.tagName}` : "";
}

function isReadList(element: HTMLElement): element is ReadList {
  return "resume" in element;
}

function numberIn(state: unknown): number {
  const visit = typeof state === "object" && state !== null && "visit" in state ? state.visit : 0;
  return typeof visit === "number" ? visit : 0;
}
