// A code that pairs a browser, as it is typed. Pure.

export const CODE_LENGTH = 8;

/** Return the signs of a code that are shown: its letters and digits, as the server writes them. */
export function signsOf(text: string): string {
  return text
    .replace(/[^a-z0-9]/gi, "")
    .slice(0, CODE_LENGTH)
    .toUpperCase();
}

/** Return the number of signs that are missing. */
export function toGo(text: string): number {
  return CODE_LENGTH - signsOf(text).length;
}

/** Return a code with its halves apart, as it is read out and typed. */
export function shownCode(code: string): string {
  const half = CODE_LENGTH / 2;
  return `${code.slice(0, half)}-${code.slice(half)}`;
}
