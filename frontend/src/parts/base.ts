import { LitElement } from "lit";

/** Answers count once a card was visible for this long, so that none is given by mistake. */
export const READ_MS = 400;

/** An element of the page that draws into the document, whose styles are those of the page. */
export class PageElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

/** Return whether a key is pressed for the page, and not in a field. */
export function isForPage(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0] as HTMLElement | undefined;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  return !(target?.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target?.tagName ?? ""));
}

export function go(path: string): void {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

export function followLink(event: MouseEvent): void {
  const link = (event.composedPath() as HTMLElement[]).find((node) => node.tagName === "A") as HTMLAnchorElement | undefined;
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  if (link.origin !== location.origin || !link.pathname.startsWith("/ui/")) return;
  event.preventDefault();
  go(link.pathname);
}
