// Colours of lines that are drawn without an editor. A chunk of its own, which comes with the first such line.

import { LanguageDescription } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { highlightCode, tagHighlighter } from "@lezer/highlight";
import { CODE_TAGS } from "./code-tags.ts";
import type { Span } from "../code-spans.ts";

/** Longer texts have no colours: they are parsed at once. */
const MAXIMUM_CHARACTERS = 100_000;

const HIGHLIGHTER = tagHighlighter(CODE_TAGS.map(({ name, tag }) => ({ tag, class: `c-${name}` })));

/** Return the coloured parts of each line of a file; nothing if its language is not known. */
export function codeColours(text: string, path: string): Promise<Span[][]> {
  return coloursIn(text, LanguageDescription.matchFilename(languages, path.split("/").pop() ?? ""));
}

/** Return the same of a block of Markdown, whose language has a name. */
export function fenceColours(text: string, name: string): Promise<Span[][]> {
  return coloursIn(text, LanguageDescription.matchLanguageName(languages, name, false));
}

async function coloursIn(text: string, found: LanguageDescription | null): Promise<Span[][]> {
  if (text.length > MAXIMUM_CHARACTERS || found === null) return [];
  const { language } = await found.load();
  const lines: Span[][] = [[]];
  let at = 0;
  highlightCode(
    text,
    language.parser.parse(text),
    HIGHLIGHTER,
    (code, classes) => {
      if (classes) lines.at(-1)?.push({ from: at, to: at + code.length, name: classes });
      at += code.length;
    },
    () => {
      lines.push([]);
      at = 0;
    },
  );
  return lines;
}
