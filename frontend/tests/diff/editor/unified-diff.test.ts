import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lineHunks, splitLines } from "../../../src/diff/line-diff.ts";
import { filesOf } from "../../../src/diff/editor/unified-diff.ts";

const DIFF = `\`\`\`diff
--- a/one.py
+++ b/one.py
@@ -1,3 +1,4 @@
 a
-b
+B
+more
 c
@@ -10,2 +11,2 @@ def f():
-x
+y
 z
\\ No newline at end of file
--- /dev/null
+++ b/two words.py
@@ -0,0 +1 @@
+--- not a heading
Binary files a/x.png and b/x.png differ
\`\`\`
`;

describe("a unified diff", () => {
  it("is taken apart by file, with the numbers of the lines", () => {
    const { files, notes } = filesOf(DIFF);
    expect(files).toEqual([
      {
        path: "one.py",
        before: "a\nb\nc\n@@ -10,2 +11,2 @@\nx\nz",
        after: "a\nB\nmore\nc\n@@ -10,2 +11,2 @@\ny\nz",
        numbersBefore: [1, 2, 3, 0, 10, 11],
        numbersAfter: [1, 2, 3, 4, 0, 11, 12],
        isNew: false,
        added: 3,
        removed: 2,
      },
      {
        path: "two words.py",
        before: "",
        after: "--- not a heading",
        numbersBefore: [],
        numbersAfter: [1],
        isNew: true,
        added: 1,
        removed: 0,
      },
    ]);
    expect(notes).toEqual(["Binary files a/x.png and b/x.png differ"]);
  });

  it("takes lines of content for content, whatever they look like", () => {
    const line = fc.constantFrom("", "a", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-", "+", "\\ odd", "```");
    fc.assert(
      fc.property(fc.array(line, { minLength: 1 }), fc.array(line), (old, now) => {
        const body = [...old.map((one) => `-${one}`), ...now.map((one) => `+${one}`)];
        const heading = `--- a/f\n+++ b/f\n@@ -1,${old.length} +${now.length ? 1 : 0},${now.length} @@\n`;
        const { files, notes } = filesOf(`${heading}${body.join("\n")}\n`);
        expect(notes).toEqual([]);
        expect(files).toHaveLength(1);
        expect(files[0]).toMatchObject({ before: old.join("\n"), after: now.join("\n") });
        expect(files[0]).toMatchObject({ removed: old.length, added: now.length });
      }),
    );
  });

  it("takes a line for a heading only if both sides have one", () => {
    expect(filesOf("--- a/x\nmore\n")).toEqual({ files: [], notes: ["--- a/x", "more"] });
  });

  it("loses no line of a text that is cut off", () => {
    fc.assert(
      fc.property(fc.nat(DIFF.length), (end) => {
        const { files, notes } = filesOf(DIFF.slice(0, end));
        for (const { before, after, numbersBefore, numbersAfter } of files) {
          if (numbersBefore.length) expect(before.split("\n")).toHaveLength(numbersBefore.length);
          if (numbersAfter.length) expect(after.split("\n")).toHaveLength(numbersAfter.length);
        }
        expect(notes.length).toBeLessThanOrEqual(2);
      }),
    );
  });

  it("has sides whose hunks are those of the diff", () => {
    const [file] = filesOf(DIFF).files;
    const hunks = lineHunks(splitLines(file?.before ?? ""), splitLines(file?.after ?? ""));
    expect(hunks.map(({ oldFrom, newFrom }) => [oldFrom, newFrom])).toEqual([
      [1, 1],
      [4, 5],
    ]);
  });
});
