// Makes a module for each language of the page from the tables of words, and leaves these out of the page.
//
// A table (any src/**/words.ts) has a row [english, simplified Chinese] for each key. In the page the table of a source is
// what src/language.ts has loaded for it: the texts of one language.

import { relative, resolve } from "node:path";
import type { Plugin } from "vite";
import { chineseMarks } from "./punctuation.ts";
import { type Row, tableIn, tablesBelow } from "./tables.ts";
import { toTraditional } from "./traditional.ts";

const SOURCES = resolve(import.meta.dirname, "../src");
const LANGUAGE_MODULE = resolve(SOURCES, "language.ts");
const NAME = /^virtual:languages\/texts-([\w-]+)$/;

const COLUMNS: Readonly<Record<string, (row: Row) => string>> = {
  en: ([english]) => english,
  "zh-Hans": ([, simplified]) => chineseMarks(simplified),
  "zh-Hant": ([, simplified]) => toTraditional(chineseMarks(simplified)),
};

/** Texts in one language by the source of their table, then by their keys. */
export type Texts = Record<string, Record<string, string>>;

/** Return the texts of all tables in a language. */
export function textsIn(language: string, folder = SOURCES): Texts {
  const column = COLUMNS[language];
  if (!column) throw new Error(`no texts in ${JSON.stringify(language)}: expected ${Object.keys(COLUMNS).join(", ")}`);
  const texts: Texts = {};
  for (const [path, rows] of tablesBelow(folder))
    texts[relative(folder, path)] = Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, column(row)]));
  return texts;
}

export function languages(): Plugin {
  return {
    name: "languages",
    enforce: "pre",
    resolveId: (id) => (NAME.test(id) ? `\0${id}.js` : undefined),
    load(id) {
      const [, language] = NAME.exec(id.replace(/^\0|\.js$/g, "")) ?? [];
      if (language === undefined) return undefined;
      for (const path of tablesBelow(SOURCES).keys()) this.addWatchFile(path);
      return `export default ${JSON.stringify(textsIn(language))};`;
    },
    transform(code, id) {
      const path = id.split("?")[0] ?? "";
      if (!path.startsWith(SOURCES) || !path.endsWith("/words.ts")) return undefined;
      const table = tableIn(code, path);
      if (!table) return undefined;
      const texts = `TEXTS[${JSON.stringify(relative(SOURCES, path))}]`;
      return {
        code: `import { TEXTS } from ${JSON.stringify(LANGUAGE_MODULE)};\n${code.slice(0, table.start)}${texts}${code.slice(table.end)}`,
        map: null,
      };
    },
  };
}
