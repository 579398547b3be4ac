// The listeners of gestures: pointers of an element go to a recogniser, and what it finds to a function.

import { type Gesture, Recogniser, type Touch } from "./recogniser.ts";

const TYPES: Readonly<Record<string, Touch["type"]>> = {
  pointerdown: "down",
  pointermove: "move",
  pointerup: "up",
  pointercancel: "cancel",
  contextmenu: "menu",
};

/** What is pressed or typed in by itself: no gesture begins there. */
const OWN = "button, a, input, textarea, select, summary, [contenteditable='true']";

export interface TouchEvents {
  /** Take a gesture; `target` is the element where it began. Return whether it did something, so that no click follows. */
  onGesture: (gesture: Gesture, target: Element) => boolean;
  /** Whether a gesture may begin on buttons, e.g. where they are rows of a list. */
  onButtons?: boolean;
}

/**
 * Listen for gestures of a finger on an element, whose CSS leaves movement to the sides to the page (`touch-action`). Text
 * that was selected before is not disturbed. Return a function that ends it.
 */
export function watchTouch(element: HTMLElement, { onGesture, onButtons = false }: TouchEvents): () => void {
  const recogniser = new Recogniser();
  let target: Element | undefined;
  let wasGesture = false;
  const take = (event: PointerEvent | MouseEvent): void => {
    const type = TYPES[event.type];
    if (!type || ("pointerType" in event && event.pointerType !== "touch")) return;
    const at = event.composedPath()[0];
    if (type === "down") {
      if (!(at instanceof Element)) return;
      target = at;
      if ("isPrimary" in event && event.isPrimary) recogniser.reset();
    }
    const { clientX: x, clientY: y, timeStamp } = event;
    const id = "pointerId" in event ? event.pointerId : -1;
    const gesture = recogniser.take({ type, id, x, y, at: timeStamp }, innerWidth);
    if (type === "down" && at instanceof Element && isTaken(at, onButtons)) recogniser.spoil();
    wasGesture = gesture !== undefined && target !== undefined && onGesture(gesture, target);
  };
  // What a gesture did is done: no click follows, which would take the focus away again.
  const ended = (event: TouchEvent): void => {
    if (wasGesture && event.cancelable) event.preventDefault();
    wasGesture = false;
  };
  const names = Object.keys(TYPES) as ("pointerdown" | "pointermove" | "pointerup" | "pointercancel" | "contextmenu")[];
  for (const name of names) element.addEventListener(name, take);
  element.addEventListener("touchend", ended, { passive: false });
  return () => {
    for (const name of names) element.removeEventListener(name, take);
    element.removeEventListener("touchend", ended);
  };
}

/** Return whether what is touched there is for something else. */
function isTaken(at: Element, onButtons: boolean): boolean {
  return (!onButtons && at.closest(OWN) !== null) || hasSelection(at);
}

/** Return whether text is selected, in the page or in the shadow root of an element, which some engines ask for alone. */
function hasSelection(at: Element): boolean {
  const root = at.getRootNode() as Node & { getSelection?: () => Selection | null };
  return [getSelection(), root.getSelection?.()].some((one) => one?.isCollapsed === false);
}
