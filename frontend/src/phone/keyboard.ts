// Keyboards of phones that cover the page instead of shrinking it: the page gets the height that can be seen.

/** The part of the page that can be seen, in px of the page. */
export interface Seen {
  height: number;
  top: number;
}

/** Least height in px of a keyboard; what covers less is a bar of the browser. */
const MINIMUM = 100;

/**
 * Return what can be seen of a page of `height` px, if a keyboard covers the rest. A page that the user has enlarged shows a
 * part, too, and stays as it is.
 */
export function seenAbove(height: number, seen: Seen, scale: number): Seen | undefined {
  return Math.abs(scale - 1) < 0.01 && height - seen.height >= MINIMUM ? seen : undefined;
}

/** Let the page follow what can be seen of it. */
export function watchKeyboard(): void {
  const viewport = visualViewport;
  if (!viewport) return;
  const root = document.documentElement;
  const fit = (): void => {
    const { height, offsetTop, scale } = viewport;
    const seen = seenAbove(innerHeight, { height, top: offsetTop }, scale);
    root.classList.toggle("shifted", seen !== undefined);
    if (seen) {
      root.style.setProperty("--seen-height", `${seen.height}px`);
      root.style.setProperty("--seen-top", `${seen.top}px`);
    } else for (const name of ["--seen-height", "--seen-top"]) root.style.removeProperty(name);
  };
  viewport.addEventListener("resize", fit);
  viewport.addEventListener("scroll", fit);
  fit();
}
