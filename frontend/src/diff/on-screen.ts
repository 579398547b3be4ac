// The part of the screen through which an element can be seen, and when that may have changed.

/** Return the upper and lower border of it in px: those of the page and of all boxes that scroll or cut off around the element. */
export function windowOf(element: Element): { top: number; bottom: number } {
  let top = visualViewport?.offsetTop ?? 0;
  let bottom = top + (visualViewport?.height ?? innerHeight);
  for (let at: Element | null = parentOf(element); at; at = parentOf(at)) {
    // What sticks to the end of a card covers what is behind.
    for (const child of at.children)
      if (child.classList.contains("card-foot")) bottom = Math.min(bottom, child.getBoundingClientRect().top);
    const { overflowY, display, scrollPaddingTop } = getComputedStyle(at);
    if (overflowY === "visible" || display === "contents" || at === document.scrollingElement || at === document.body)
      continue;
    const rect = at.getBoundingClientRect();
    // What stays at the top of a box while it scrolls covers what is behind.
    top = Math.max(top, rect.top + (Number.parseFloat(scrollPaddingTop) || 0));
    bottom = Math.min(bottom, rect.bottom);
  }
  return { top, bottom };
}

/** Return the nearest element around one, or that one, which scrolls; the window if there is none. */
export function scrollerOf(element: Element): Element | Window {
  for (let at: Element | null = element; at; at = parentOf(at)) {
    if (at.scrollHeight > at.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  }
  return window;
}

/** Return the parent of an element, also across the border of a shadow root. */
export function parentOf(element: Element): Element | null {
  if (element.assignedSlot) return element.assignedSlot;
  const { parentElement } = element;
  const root = element.getRootNode();
  return parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}

/**
 * Call a function in the next frame whenever something else may be on the screen; return a function that ends it.
 *
 * While a dialog is open nothing is called: it covers what is behind, wherever that is.
 */
export function watchScreen(look: () => void): { soon: () => void; end: () => void } {
  let frame = 0;
  const soon = (): void => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      if (document.visibilityState === "visible" && !document.querySelector("dialog:modal")) look();
    });
  };
  document.addEventListener("scroll", soon, { capture: true, passive: true });
  document.addEventListener("visibilitychange", soon);
  document.addEventListener("close", soon, { capture: true }); // of a dialog
  addEventListener("resize", soon);
  return {
    soon,
    end() {
      cancelAnimationFrame(frame);
      document.removeEventListener("scroll", soon, { capture: true });
      document.removeEventListener("visibilitychange", soon);
      document.removeEventListener("close", soon, { capture: true });
      removeEventListener("resize", soon);
    },
  };
}
