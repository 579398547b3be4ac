// What the reason of a failure says of the time after it. Pure.

/** How isthmus/models/endpoint/failure.py says how long a provider asks to wait. */
const WAIT = /; it asks to wait (\d+(?:\.\d+)?(?:e[+-]?\d+)?) s\b/;
/** Longest wait that is taken as advice; a longer one is a fault of the server. */
const LONGEST_S = 7 * 86_400;

/** Return the time in milliseconds from which on a failed request may be tried again; 0 if it is not known or over. */
export function waitUntil(error: string, at: number, now: number): number {
  const seconds = Number(WAIT.exec(error)?.[1] ?? 0);
  const until = at + seconds * 1000;
  return at && seconds > 0 && seconds <= LONGEST_S && until > now ? until : 0;
}
