// Which questions the user has put off, on this device: they stand at the end of the list, in the order of putting off.

const KEPT = "isthmus.later";
/** Maximum number of keys that are kept; the oldest are forgotten first. */
const MAXIMUM = 200;

let known: string[] | undefined;

function read(): string[] {
  if (known) return known;
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    known = Array.isArray(found) ? found.filter((key) => typeof key === "string") : [];
  } catch {
    known = []; // storage is off, or holds something else
  }
  return known;
}

export function isLater(key: string): boolean {
  return read().includes(key);
}

/** Put a question off, or take that back. */
export function setLater(key: string, isOff: boolean): void {
  const others = read().filter((one) => one !== key);
  known = isOff ? [...others, key].slice(-MAXIMUM) : others;
  try {
    localStorage.setItem(KEPT, JSON.stringify(known));
  } catch {
    // It holds until the page is left then.
  }
}

/** Return items with those that were put off at the end. */
export function inOrder<Item extends { key: string }>(items: readonly Item[]): Item[] {
  const off = read();
  const place = ({ key }: Item): number => off.indexOf(key);
  return [...items].sort((one, other) => place(one) - place(other));
}
