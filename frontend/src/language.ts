// The language of the page: that of the first language of the user's browser that the page has.
//
// The build makes a module of texts for each language from the tables of words (languages/plugin.ts): a browser loads one.

export type Language = "en" | "zh-Hans" | "zh-Hant";

type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Return the language of the page for a user who reads these languages, best first. */
export function languageFor(tags: readonly string[]): Language {
  const tag = tags.find((each) => /^(en|zh)\b/i.test(each)) ?? "en";
  if (/^en/i.test(tag)) return "en";
  return /-(hant|tw|hk|mo)\b/i.test(tag) && !/-hans\b/i.test(tag) ? "zh-Hant" : "zh-Hans";
}

export const LANGUAGE = languageFor(navigator.languages ?? [navigator.language]);

/** Return a number as it is written in the language of the page. */
export function numeral(value: number): string {
  return value.toLocaleString(LANGUAGE);
}

const LOAD: Readonly<Record<Language, () => Promise<{ default: Texts }>>> = {
  en: () => import("virtual:languages/texts-en"),
  "zh-Hans": () => import("virtual:languages/texts-zh-Hans"),
  "zh-Hant": () => import("virtual:languages/texts-zh-Hant"),
};

/** Texts in this language by the source of their table. */
export const TEXTS: Texts = (await LOAD[LANGUAGE]()).default;
