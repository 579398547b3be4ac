// Whether a pointer is pressed. What moves others must wait for the click that a press ends in, or that click is lost.

let isPressed = false;

addEventListener("pointerdown", () => (isPressed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false), true);

/** Call `act` now, or if a pointer is pressed, after the click that this press ends in. */
export function afterPress(act: () => void): void {
  if (!isPressed) {
    act();
    return;
  }
  const ended = new AbortController();
  for (const end of ["pointerup", "pointercancel"])
    addEventListener(
      end,
      () => {
        ended.abort();
        setTimeout(act);
      },
      { signal: ended.signal },
    );
}
