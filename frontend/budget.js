// Holds the first load of the page to its size, compressed as the server sends it: the document with all that it names,
// what its scripts import at once, and the texts of the language with the longest ones. Diffs, editors and seldom pages
// come later. Needs the built page.

import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const MAXIMUM_KIB = 95;

const BUILT = new URL("../src/isthmus/web/ui/", import.meta.url);
const read = (name) => readFileSync(new URL(name, BUILT));

const files = new Set(["index.html", "sw.js"]);
const named = [
  ...read("index.html")
    .toString()
    .matchAll(/(?:src|href)="\/ui\/([^"]+)"/g),
];
for (const [, name] of named) if (!name.endsWith("icon-192.png")) files.add(name); // the icon of a home screen
// A set goes on with what is added to it.
for (const name of files) {
  if (!name.endsWith(".js") || name === "sw.js") continue;
  const imported = [
    ...read(name)
      .toString()
      .matchAll(/(?:\bfrom|\bimport)\s*"\.\/([^"]+)"/g),
  ];
  for (const [, other] of imported) files.add(`assets/${other}`);
}
if (![...files].some((name) => name.startsWith("assets/"))) throw new Error("expected index.html to name scripts");

const sizeOf = (name) => gzipSync(read(name), { level: 9 }).length / 1024;
const texts = readdirSync(new URL("assets/", BUILT)).filter((name) => name.startsWith("texts-"));
if (texts.length < 2) throw new Error("expected the texts of each language in a file of its own");
const [longest] = texts.map((name) => `assets/${name}`).sort((one, other) => sizeOf(other) - sizeOf(one));
files.add(longest);

const sizes = [...files].map((name) => [name, sizeOf(name)]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
const said = `first load of the page: ${total.toFixed(1)} KiB compressed, at most ${MAXIMUM_KIB}`;
console.log(said);
if (total > MAXIMUM_KIB) {
  for (const [name, size] of sizes) console.error(`  ${size.toFixed(1)} KiB  ${name}`);
  console.error(`error: ${said}: let src/later-pages.ts or an import() load what is not seen at once`);
  process.exitCode = 1;
}
