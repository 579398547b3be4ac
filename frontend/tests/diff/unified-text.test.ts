import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { filesOf } from "../../src/diff/editor/unified-diff.ts";
import { unifiedText } from "../../src/diff/unified-text.ts";

/** Apply a unified diff of one file to its old lines, as `patch` does. */
function patched(before: string, diff: string): string {
  const old = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const result: string[] = [];
  let at = 0;
  for (const line of diff.split("\n").slice(2, -1)) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? /.exec(line);
    if (hunk) {
      const from = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
      result.push(...old.slice(at, from));
      at = from;
    } else if (line.startsWith("\\")) result.push((result.pop() ?? "").replace(/\n$/, ""));
    else if (line.startsWith("-")) at += 1;
    else {
      result.push(`${line.slice(1)}\n`);
      if (line.startsWith(" ")) at += 1;
    }
  }
  return [...result, ...old.slice(at)].join("");
}

const texts = fc.array(fc.constantFrom("a\n", "b\n", "c\n", "\n"), { maxLength: 25 }).map((lines) => lines.join(""));

describe("a change as a unified diff", () => {
  it("leads from the old text to the new one", () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(patched(before, unifiedText("a.py", before, after))).toBe(after);
      }),
    );
  });

  it("is one that git reads", () => {
    expect(unifiedText("src/a.py", "1\n2\n", "1\n3")).toBe(
      "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n\\ No newline at end of file\n",
    );
    expect(unifiedText("/tmp/new", undefined, "1\n")).toBe("--- /dev/null\n+++ b/tmp/new\n@@ -0,0 +1 @@\n+1\n");
    expect(unifiedText("gone", "1\n", "")).toBe("--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    expect(filesOf(unifiedText("a", "1\n", "2\n")).files).toMatchObject([{ path: "a", added: 1, removed: 1 }]);
  });
});
