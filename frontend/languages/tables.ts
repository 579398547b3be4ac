// Reads the tables of words from their sources: `const TABLE = { key: [english, simplified Chinese], ... }`.

import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { parseAst } from "vite";

/** A text in English and in simplified Chinese. */
export type Row = readonly [english: string, simplified: string];

/** The rows of a table by their keys, and where its literal stands in the source. */
export interface Table {
  rows: Readonly<Record<string, Row>>;
  start: number;
  end: number;
}

interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

/** Return the table of words in a source of TypeScript; undefined if it makes no texts of one. */
export function tableIn(source: string, path: string): Table | undefined {
  if (!source.includes("textsOf")) return undefined;
  const literal = literalOf(parseAst(source, { lang: "ts" }) as unknown as Node);
  if (!literal) throw new Error(`${path}: expected a table of words, const TABLE = {...}`);
  const rows: Record<string, Row> = {};
  for (const property of literal.properties as Node[]) {
    const key = property.key as Node | undefined;
    const name = String(key?.name ?? key?.value ?? "");
    const texts = ((property.value as Node | undefined)?.elements as Node[] | undefined)?.map((each) => each.value);
    const [english, simplified, ...more] = texts ?? [];
    if (!name || typeof english !== "string" || typeof simplified !== "string" || more.length)
      throw new Error(`${path}: ${name || "a row"}: expected [english, simplified Chinese], two string literals`);
    if (name in rows) throw new Error(`${path}: ${name}: is there twice`);
    rows[name] = [english, simplified];
  }
  return { rows, start: literal.start, end: literal.end };
}

/** Return the paths of all sources that may hold a table of words. */
export function wordFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => basename(path) === "words.ts")
    .map((path) => join(folder, path))
    .sort();
}

/** Return the rows of all tables below a folder, by the paths of their sources. */
export function tablesBelow(folder: string): Map<string, Table["rows"]> {
  const found = new Map<string, Table["rows"]>();
  for (const path of wordFiles(folder)) {
    const table = tableIn(readFileSync(path, "utf8"), path);
    if (table) found.set(path, table.rows);
  }
  return found;
}

/** Return the object literal of `const TABLE = {...} as const`, exported or not. */
function literalOf(program: Node): Node | undefined {
  for (const statement of program.body as Node[]) {
    const { declarations } = (statement.declaration as Node | null | undefined) ?? statement;
    const declared = declarations as Node[] | undefined;
    for (const each of declared ?? []) {
      if ((each.id as Node).name !== "TABLE") continue;
      let value = each.init as Node;
      while (value.type.startsWith("TS")) value = value.expression as Node;
      if (value.type === "ObjectExpression") return value;
    }
  }
  return undefined;
}
