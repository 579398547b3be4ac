// Text to the clipboard, also where the page was not opened over HTTPS.

/** Copy a text; return whether the browser has taken it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Copy by a selection: over plain HTTP browsers have no other way. */
function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "vh";
  field.setAttribute("aria-hidden", "true");
  // Within an open dialogue, as all else cannot have the focus.
  (focused?.closest("dialog") ?? document.body).append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}
