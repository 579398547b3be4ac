// Sets the punctuation of Chinese texts: full-width marks, without spaces around them, but in code and between numbers.

const WIDE: Readonly<Record<string, string>> = {
  ",": "\uff0c",
  ";": "\uff1b",
  ":": "\uff1a",
  "?": "\uff1f",
  "!": "\uff01",
};

/** Code between backticks, and addresses, which stay as they are. */
const KEPT = /`[^`]*`|https?:\/\/\S+/g;
/** A character of no text, which stands for what is kept. */
const PLACE = "\ue000";
const HAN = /\p{Script=Han}/u;

/** Return a Chinese text with the marks of Chinese, where its table has those of a keyboard. */
export function chineseMarks(text: string): string {
  const kept = text.match(KEPT) ?? [];
  let at = 0;
  return wide(text.replace(KEPT, PLACE)).replaceAll(PLACE, () => kept[at++] ?? "");
}

function wide(text: string): string {
  return text
    .replace(/\(([^()]*)\)/g, (all, inner: string, start: number) =>
      HAN.test(inner) || HAN.test(text[start - 1] ?? "") ? `\uff08${inner}\uff09` : all,
    )
    .replace(/(?<!\d)([,;:?!])(?!\d)\s?/g, (_, mark: string) => WIDE[mark] ?? mark);
}
