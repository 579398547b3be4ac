// The table of keys and what the page does with keys: each that is listed is handled, and each that is handled is listed.

import { describe, expect, it } from "vitest";
import { KEYS, type KeyPlace } from "../../src/frame/key-table.ts";

const SOURCES = import.meta.glob<string>(["../../src/**/*.ts", "!**/words.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The modules that handle keys, with the places whose keys these are. */
const MODULES: readonly [readonly KeyPlace[], readonly string[]][] = [
  [["everywhere"], ["main"]],
  [["inbox"], ["pages/inbox-page"]],
  [
    ["question", "edit"],
    [
      "parts/cards/question-card",
      "parts/cards/review-card",
      "parts/cards/form-card",
      "parts/cards/answer-card",
      "parts/cards/edit-card",
    ],
  ],
  [["files of one"], ["parts/cards/all-files"]],
  [["session"], ["pages/task-page", "conversation/chosen-prompt"]],
  [["changes"], ["pages/diff-page"]],
  [["history"], ["pages/history-page"]],
  [["files"], ["pages/files-page"]],
  [["written"], ["pages/written-page"]],
];
/** Keys of lists, fields and dialogs, which all programs have, and the one that begins a sequence. */
const USUAL = /^(Escape|Enter|Tab|Arrow\w+|Page\w+|Home|End|g|[1-9])$/;
/** Keys that a place has besides its rows: ⌘K, `?` and ⌘F, and the answers of the card around several files. */
const BESIDES: Partial<Record<KeyPlace, readonly string[]>> = {
  everywhere: ["k", "?"],
  session: ["f"],
  "files of one": ["y", "n"],
};

/** Return the keys that a module handles. */
function handledIn(modules: readonly string[]): Set<string> {
  const keys = new Set<string>();
  for (const module of modules) {
    const source = SOURCES[`../../src/${module}.ts`] ?? "";
    expect(source, module).not.toBe("");
    for (const [, first, key] of source.matchAll(/first === "(g)" && event\.key === "(.)"/g))
      keys.add(`${first} ${key}`);
    const alone = source.replaceAll(/first === "g" && event\.key === "."/g, "");
    for (const [, key = ""] of alone.matchAll(/\bkey [!=]== "([^"]+)"|case "(.)":/g)) keys.add(key);
    for (const [, key = ""] of alone.matchAll(/case "(.)":/g)) keys.add(key);
    if (/\[1-9\]/.test(source)) keys.add("1-9");
    if (/isEnter\(event\) && \(event\.(metaKey|ctrlKey)/.test(source) || /sendKey\(\)/.test(source)) keys.add("Send");
  }
  return keys;
}

describe.each(MODULES)("the keys of %j", (places, modules) => {
  const handled = handledIn(modules);
  const listed = KEYS.filter((row) => places.includes(row.at)).flatMap((row) => row.keys);

  it("that are listed are handled", () => {
    const single = listed.flatMap((key) => (key === " " || key.startsWith("g ") ? [key] : key.split(" ")));
    expect(single.filter((key) => !handled.has(key))).toEqual([]);
  });

  it("that are handled are listed", () => {
    const besides = places.flatMap((place) => BESIDES[place] ?? []);
    const found = [...handled].filter((key) => key && !USUAL.test(key));
    expect(found.filter((key) => ![...listed, ...besides].includes(key))).toEqual([]);
  });
});

describe("a text that is being composed", () => {
  it("is asked for by the one helper, since engines tell of its end at different times", () => {
    const others = Object.entries(SOURCES).filter(([path, source]) => {
      return !path.endsWith("/frame/keys.ts") && /\.isComposing\b|\bkeyCode\b/.test(source);
    });
    expect(others.map(([path]) => path)).toEqual([]);
  });
});
