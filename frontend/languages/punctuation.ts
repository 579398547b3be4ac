// Sets the punctuation of Chinese texts: full-width marks, without spaces around them, but in code and between numbers.

const WIDE: Readonly<Record<string, string>> = {
  ",": "\uff0c",
  ";": "\uff1b",
  ":": "\uff1a",
  "?": "\uff1f",
  "!": "\uff01",
};

/** Code between backticks, or a key such as `/ide enable` or `https://x`, which stay as they are. */
const KEPT = /(`[^`]*`|https?:\/\/\S+)/;
const HAN = /[\p{Script=Han}\p{Script=Bopomofo}]/u;

/** Return a Chinese text with the marks of Chinese, where its table has those of a keyboard. */
export function chineseMarks(text: string): string {
  return text
    .split(KEPT)
    .map((part, at) => (at % 2 ? part : wide(part)))
    .join("");
}

function wide(text: string): string {
  return text
    .replace(/\(([^()]*)\)/g, (all, inner: string, at: number) =>
      HAN.test(inner) || HAN.test(text[at - 1] ?? "") ? `\uff08${inner}\uff09` : all,
    )
    .replace(/(?<!\d)([,;:?!])(?!\d)\s?/g, (_, mark: string) => WIDE[mark] ?? mark);
}
