// The name of what a line of code stands in, as far as its text tells it without a parser. Pure.

/** Lines above a line that are looked at. */
const REACH = 1_000;

const NAME = "([\\p{L}_$][\\p{L}\\p{N}_$]*)";
const PYTHON = [`(?:async\\s+)?def\\s+${NAME}`, `class\\s+${NAME}`];
const SCRIPT = [
  `(?:export\\s+)?(?:default\\s+)?(?:abstract\\s+)?(?:async\\s+)?(?:function\\s*\\*?|class|interface|enum|namespace)\\s+${NAME}`,
  `(?:export\\s+)?(?:const|let)\\s+${NAME}\\s*=\\s*(?:async\\s*)?(?:\\([^)]*\\)|[\\p{L}_$]+)\\s*=>`,
  `(?:(?:public|private|protected|static|override|async|get|set)\\s+)*(?!if\\b|for\\b|while\\b|switch\\b|catch\\b|with\\b)#?${NAME}\\s*\\([^;]*\\)[^;=]*\\{\\s*$`,
];
const OTHER = [
  `(?:pub(?:\\([^)]*\\))?\\s+)?(?:const\\s+|async\\s+|unsafe\\s+)*(?:fn|struct|enum|trait|impl|mod|func|def|class|module|interface|object|fun|sub|type)\\s+(?:\\([^)]*\\)\\s*)?${NAME}`,
  `(?:[\\p{L}_][\\p{L}\\p{N}_:<>,*&\\[\\]]*\\s+)+[*&]*(?!if\\b|for\\b|while\\b|switch\\b|return\\b)${NAME}\\s*\\([^;]*\\)?[^;=]*\\{?\\s*$`,
];
const KINDS: Record<string, readonly string[]> = {
  ...Object.fromEntries(["py", "pyi"].map((ending) => [ending, PYTHON])),
  ...Object.fromEntries(["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"].map((ending) => [ending, SCRIPT])),
  ...Object.fromEntries(
    ["rs", "go", "rb", "java", "kt", "swift", "scala", "cs", "php", "c", "h", "cc", "cpp", "hpp", "pl"].map(
      (ending) => [ending, OTHER],
    ),
  ),
};

/** Return the name of the function or class around a line, which counts from 1; empty if its language tells none. */
export function scopeOf(path: string, line: number, lineAt: (line: number) => string): string {
  const kinds = KINDS[path.slice(path.lastIndexOf(".") + 1).toLowerCase()];
  if (!kinds) return "";
  const patterns = kinds.map((kind) => new RegExp(`^\\s*${kind}`, "u"));
  let depth = Infinity;
  for (let at = line; at >= Math.max(1, line - REACH); at -= 1) {
    const text = lineAt(at).slice(0, 500);
    if (!text.trim()) continue;
    const indent = text.length - text.trimStart().length;
    if (at < line && indent >= depth) continue;
    for (const pattern of patterns) {
      const found = pattern.exec(text)?.[1];
      if (found) return found;
    }
    depth = Math.min(depth, indent);
    if (depth === 0) return "";
  }
  return "";
}
