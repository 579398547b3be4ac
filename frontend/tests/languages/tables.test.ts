import { describe, expect, it } from "vitest";
import { tableIn } from "../../languages/tables.ts";

const source = (rows: string): string =>
  `import { textsOf } from "y";\nexport const TABLE = {${rows}} as const;\nexport const t = textsOf(TABLE);\n`;

describe("a table of words", () => {
  it("is read with its place in the source", () => {
    const text = source('a: ["One \\u00b7 {0}", "一"], "b-c": ["Two", "二"], // a comment\n');
    const table = tableIn(text, "words.ts");
    expect(table?.rows).toEqual({ a: ["One \u00b7 {0}", "一"], "b-c": ["Two", "二"] });
    expect(text.slice(table?.start, (table?.start ?? 0) + 4)).toBe("{a: ");
    expect(text.slice(table?.end)).toMatch(/^ as const;/);
  });

  it.each([
    ["without Chinese", 'a: ["One"]'],
    ["with three texts", 'a: ["One", "一", "壹"]'],
    ["with what is not a literal", 'a: ["One", x]'],
    ["that is one text", 'a: "One"'],
    ["that comes from elsewhere", "...x"],
    ["that is there twice", 'a: ["One", "一"], a: ["Two", "二"]'],
  ])("with a row %s is refused with the key and the file", (_, rows) => {
    expect(() => tableIn(source(rows), "words.ts")).toThrow(/^words\.ts: (a|a row): /);
  });

  it("is read where it is not exported", () => {
    const text = source('a: ["One", "一"]').replace("export const TABLE", "const TABLE");
    expect(tableIn(text, "words.ts")?.rows).toEqual({ a: ["One", "一"] });
  });

  it("is expected in a source that makes texts of it", () => {
    const text = 'export const t = textsOf({ a: ["One", "一"] });';
    expect(() => tableIn(text, "words.ts")).toThrow("words.ts: expected a table of words");
  });

  it("is not in a source without one", () => {
    expect(tableIn("export const words = {};", "words.ts")).toBeUndefined();
  });
});
