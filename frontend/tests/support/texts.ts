// Texts of few different lines, as those that are hard to compare.

import fc from "fast-check";

const line = fc.constantFrom("", "a", "b", "}", "  return x", "\u00e9", "\ufeffa", "a\r");

/** Texts with and without a line feed at their end. */
export const anyText: fc.Arbitrary<string> = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.constantFrom("", "\n"))
  .map(([lines, end]) => lines.join("\n") + end);

/** A text, and what edits made of it. */
export const anyEdit: fc.Arbitrary<[string, string]> = fc.oneof(
  fc.tuple(anyText, anyText),
  fc
    .tuple(anyText, fc.array(fc.tuple(fc.nat(30), fc.nat(3), fc.array(line, { maxLength: 3 })), { maxLength: 5 }))
    .map(([text, edits]): [string, string] => {
      const lines = text.split("\n");
      for (const [at, count, more] of edits) lines.splice(at, count, ...more);
      return [text, lines.join("\n")];
    }),
);

/** The same in texts of one kind of line ends, as an editor has them. */
export const anyEditorEdit: fc.Arbitrary<[string, string]> = anyEdit.map(([before, after]) => [
  before.replaceAll("\r", ""),
  after.replaceAll("\r", ""),
]);
