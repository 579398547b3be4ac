import { expect, it } from "vitest";
import { scopeOf } from "../../src/diff/scope.ts";

const around = (path: string, text: string, line: number): string => {
  const lines = text.split("\n");
  return scopeOf(path, line, (number) => lines[number - 1] ?? "");
};

it("a line of Python is in its function, or in its class", () => {
  const text =
    "import x\n\nclass Board:\n    limit = 1\n\n    async def late(self):\n        if self:\n\n            return 1\n\nlast = 2\n";
  expect([1, 4, 6, 7, 9, 11].map((line) => around("a.py", text, line))).toEqual([
    "",
    "Board",
    "late",
    "late",
    "late",
    "",
  ]);
});

it("a line of a script is in its function, method or class", () => {
  const text =
    "export class Page {\n  render() {\n    if (this) {\n      draw();\n    }\n  }\n}\nconst add = (a, b) => {\n  return a;\n};\n";
  expect([2, 4, 9].map((line) => around("src/page.ts", text, line))).toEqual(["render", "render", "add"]);
});

it("a line of Go or Rust is in its function", () => {
  expect(around("a.go", "func (b *Board) Late(now int) bool {\n\treturn true\n}\n", 2)).toBe("Late");
  expect(around("a.rs", "impl Board {\n    pub fn late(&self) -> bool {\n        true\n    }\n}\n", 3)).toBe("late");
});

it("other texts tell nothing", () => {
  expect(around("notes.md", "# def x\n\ntext\n", 3)).toBe("");
});
