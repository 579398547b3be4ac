import { LitElement } from "lit";
import { PAGE } from "../place.ts";
import { enter, rename } from "../visits.ts";

/** Answers count once a card was visible for this long, so that none is given by mistake. */
export const READ_MS = 400;

/** An element of the page that draws into the document, whose styles are those of the page. */
export class PageElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  /** Draw; if what had the focus is gone or cannot have it any more, the nearest heading gets it, not the page as a whole. */
  protected override update(changed: Map<string, unknown>): void {
    const hadFocus = document.activeElement !== document.body && this.contains(document.activeElement);
    super.update(changed);
    if (hadFocus && isLost(document.activeElement)) this.focusHeading();
  }

  protected focusHeading(): void {
    const heading =
      shown(this.querySelectorAll("h2[tabindex]")) ?? shown(document.querySelectorAll("main h1, main h2"));
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus();
  }
}

function shown(elements: Iterable<Element>): HTMLElement | undefined {
  return [...elements].find((one): one is HTMLElement => one.checkVisibility());
}

function isLost(element: Element | null): boolean {
  return element === null || element === document.body || (element as HTMLButtonElement).disabled === true;
}

/** Go to a page; `by` is the link that was followed, if one was. */
export function go(path: string, by?: Element): void {
  enter(path, by);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Let the address follow what a page shows already: nothing is gone to. */
export function readdress(path: string, isNew = false): void {
  if (isNew) enter(path);
  else rename(path);
  dispatchEvent(new Event("readdressed"));
}

export function followLink(event: MouseEvent): void {
  const link = (event.composedPath() as HTMLElement[]).find((node) => node.tagName === "A") as
    HTMLAnchorElement | undefined;
  if (
    !link ||
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    link.target
  )
    return;
  if (link.origin !== location.origin || !link.pathname.startsWith(PAGE)) return;
  event.preventDefault();
  go(link.pathname, link);
}
