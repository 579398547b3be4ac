// Which presses of keys count: one press is one answer, and letters that were typed for something else are none.

import { READ_MS } from "../parts/base.ts";

/** Time in ms for which no other letter may have been typed before a key counts as an answer. */
const PAUSE_MS = READ_MS;
const SWITCH = "isthmus.letters";

/** Presses that are repetitions of a held key, or that came too soon after another letter. */
const UNMEANT = new WeakSet<KeyboardEvent>();
let lastLetterAt = -Infinity;
/** Where the key that is held, if one is, was pressed. */
let pressedIn: EventTarget | undefined;

/** Note each press before anything of the page sees it. */
export function watchKeys(): void {
  addEventListener("keydown", note, { capture: true });
}

function note(event: KeyboardEvent): void {
  const now = performance.now();
  const isLetter = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
  // Also after the same letter: a remote desktop repeats a held key as presses of their own.
  if (event.repeat || (isLetter && now - lastLetterAt < PAUSE_MS)) UNMEANT.add(event);
  if (isLetter) lastLetterAt = now;
  // A held Enter would press each button that gets the focus meanwhile.
  const target = event.composedPath()[0];
  const isOnButton = target instanceof Element && target.closest("button, a, summary") !== null;
  if (event.repeat && isOnButton && (event.key === "Enter" || event.key === " ")) event.preventDefault();
  // A held key that has opened a field would go on in it as text.
  if (!event.repeat) pressedIn = target;
  else if (target !== pressedIn && isLetter && isField(target)) event.preventDefault();
}

/** Return whether a key is pressed for the page, and not in a field or behind a dialog. */
export function isForPage(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return false;
  if (document.querySelector("dialog[open]") || (event.key.length === 1 && !hasLetters())) return false;
  return !isField(target);
}

/** Return whether a letter that is pressed in an element belongs to it. */
function isField(target: EventTarget | undefined): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && /^(radio|checkbox)$/.test(target.type)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Return whether a key is Enter, and not the one that ends the composing of a text, such as of Chinese by its sounds. */
export function isEnter(event: KeyboardEvent): boolean {
  // Some engines end composing before this press; its code is the one of keys that an input method has taken.
  return event.key === "Enter" && !isComposing(event);
}

/** Return whether a key belongs to a text that is being composed. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/** Return whether a key for the page may be an answer: one press of its own, after a pause without other letters. */
export function isMeant(event: KeyboardEvent): boolean {
  return !UNMEANT.has(event);
}

/** Return whether single letters are keys of the page. */
export function hasLetters(): boolean {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true; // storage is off
  }
}

export function setLetters(isOn: boolean): void {
  try {
    if (isOn) localStorage.removeItem(SWITCH);
    else localStorage.setItem(SWITCH, "off");
  } catch {
    // It holds for no page then.
  }
}

/** Return the keys that send what a field holds, as they are named on this machine. */
export function sendKey(): string {
  return /Mac|iPhone|iPad/.test(navigator.userAgent) ? "\u2318 \u21b5" : "Ctrl \u21b5";
}
