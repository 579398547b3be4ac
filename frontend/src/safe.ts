// Text that strangers wrote, so that it hides nothing: control, direction and invisible characters become visible.

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** Return a text with a printable stand-in for each character that does not show, but for tabs and line ends. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (found) => {
    const code = found.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\\u{${code.toString(16)}}`;
  });
}

/** The same in one line, cut to a number of characters. */
export function visibleLine(text: string, limit = 300): string {
  const line = visible(text).replace(/\s+/g, " ").trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}\u2026` : line;
}

const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g;

/** Return the output of a program without terminal sequences: the end of it, if it is long. */
export function outputText(text: string, limit = 20_000): { text: string; hidden: number } {
  const plain = visible(text.slice(-4 * limit).replace(ESCAPES, ""));
  const shown = plain.slice(-limit);
  return { text: shown, hidden: Math.max(0, text.length - shown.length) };
}
