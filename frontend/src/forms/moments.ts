// A date and time as a field shows it, in the user's zone, and as it is sent, with its offset. Pure.

const two = (value: number): string => String(Math.trunc(Math.abs(value))).padStart(2, "0");

/** Return the value of a field of date and time, for a moment with an offset; empty if it is none. */
export function toLocal(moment: string): string {
  const date = new Date(moment);
  if (!moment || Number.isNaN(date.getTime())) return "";
  const day = `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Return the moment of such a value, with the offset that the user's zone has then; other texts stay as they are. */
export function toMoment(local: string): string {
  const date = new Date(local);
  if (!local || Number.isNaN(date.getTime())) return local;
  const minutes = -date.getTimezoneOffset();
  return `${toLocal(local)}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}
