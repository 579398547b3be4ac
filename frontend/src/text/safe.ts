// Text that strangers wrote, so that it hides nothing: control, direction and invisible characters become visible.

// Single characters that do not show, also those that combine with others, are what these expressions look for.
/* eslint-disable no-control-regex, no-misleading-character-class */

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

// A shell takes these blanks for letters; text to approve has no use for variants of characters either.
const BLANK = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\ufe00-\ufe0f]/gu;
// Letters of other alphabets that look like Latin ones, as in isthmus/text/visible.py.
const LOOKALIKES =
  "\\u0251\\u0261\\u0391\\u0392\\u0395-\\u0397\\u0399\\u039a\\u039c\\u039d\\u039f\\u03a1\\u03a4\\u03a5\\u03a7\\u03bd\\u03bf\\u03c1\\u0405\\u0406\\u0408\\u0410" +
  "\\u0412\\u0415\\u041a\\u041c-\\u041e\\u0420-\\u0423\\u0425\\u0430\\u0435\\u043a\\u043e\\u0440\\u0441\\u0443\\u0445\\u0455\\u0456\\u0458\\u0474\\u0475\\u04ae" +
  "\\u04af\\u04bb\\u04c0\\u04cf\\u0501\\u050c\\u051a-\\u051d\\u0555\\u0578\\u057d\\u0585\\u13a0-\\u13f5\\u2160-\\u217f\\u2c80-\\u2ce3\\ua4d0-\\ua4ff\\uab70-\\uabbf" +
  "\\uff21-\\uff3a\\uff41-\\uff5a\\u{1d400}-\\u{1d7ff}";
const LOOKALIKE = new RegExp(`[${LOOKALIKES}]`, "gu");
const LETTERS = new RegExp(`[A-Za-z${LOOKALIKES}]+`, "gu");

/** A character that is marked in a diff to approve. */
export const MARKED = new RegExp(
  `${HIDDEN.source}|${BLANK.source}|(?<=[A-Za-z])[${LOOKALIKES}]|[${LOOKALIKES}](?=[A-Za-z])`,
  "gu",
);

function standIn(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `\\u{${code.toString(16)}}`;
}

/** Return a text with a printable stand-in for each character that does not show, but for tabs and line ends. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, standIn);
}

/** Return a text to approve: in addition, unusual blanks and letters that look Latin beside Latin ones get stand-ins. */
export function exact(text: string): string {
  const latin = text.replace(LETTERS, (letters) =>
    /[A-Za-z]/.test(letters) ? letters.replace(LOOKALIKE, standIn) : letters,
  );
  return visible(latin).replace(BLANK, standIn);
}

/** Return the three parts of such a text that two places in it make; letters are judged by their neighbours in any part. */
export function exactParts(text: string, from: number, to: number): [string, string, string] {
  const found = new Map<number, string>();
  for (const letters of text.matchAll(LETTERS)) {
    if (/[A-Za-z]/.test(letters[0]))
      for (const one of letters[0].matchAll(LOOKALIKE)) found.set(letters.index + one.index, one[0]);
  }
  const part = (begin: number, end: number): string => {
    let result = "";
    let at = begin;
    for (const [place, letter] of found) {
      if (place < at || place >= end) continue;
      result += visible(text.slice(at, place)).replace(BLANK, standIn) + standIn(letter);
      at = place + letter.length;
    }
    return result + visible(text.slice(at, end)).replace(BLANK, standIn);
  };
  return [part(0, from), part(from, to), part(to, text.length)];
}

/** The same in one line, cut to a number of characters. */
export function exactLine(text: string, limit = 300): string {
  return cutLine(exact(text), limit);
}

/** Return a visible text in one line, cut to a number of characters. */
export function visibleLine(text: string, limit = 300): string {
  return cutLine(visible(text), limit);
}

function cutLine(text: string, limit: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}\u2026` : line;
}

const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g;

/** Return the output of a program without terminal sequences: the end of it, if it is long. */
export function outputText(text: string, limit = 20_000): { text: string; hidden: number } {
  const plain = visible(text.slice(-4 * limit).replace(ESCAPES, ""));
  const shown = plain.slice(-limit);
  return { text: shown, hidden: Math.max(0, text.length - shown.length) };
}
