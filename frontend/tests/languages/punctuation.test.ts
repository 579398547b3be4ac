import { expect, it } from "vitest";
import simplified from "virtual:languages/texts-zh-Hans";
import { chineseMarks } from "../../languages/punctuation.ts";

it.each([
  ["{0},共 {1} 行", "{0}\uff0c共 {1} 行"],
  ["费用:{0}; 其他?", "费用\uff1a{0}\uff1b其他\uff1f"],
  ["附评论拒绝({0})", "附评论拒绝\uff08{0}\uff09"],
  ["启动 qwen(执行一次 /ide enable), 或 `a, b: c`", "启动 qwen\uff08执行一次 /ide enable\uff09\uff0c或 `a, b: c`"],
  ["`qwen`(执行 `b(c)`)", "`qwen`\uff08执行 `b(c)`\uff09"],
  ["例如 https://example.org/?a=1,2", "例如 https://example.org/?a=1,2"],
  ["已\uff0c有。", "已\uff0c有。"],
  ["1,000 行在 10:30", "1,000 行在 10:30"],
])("the marks of %j are set as in %j", (before, after) => {
  expect(chineseMarks(before)).toBe(after);
});

it("no Chinese text has a mark of Latin texts beside a Chinese character", () => {
  for (const [key, text] of Object.values(simplified).flatMap((table) => Object.entries(table)))
    expect(text, key).not.toMatch(/\p{Script=Han}[,;:?!()]|[,;:?!()]\p{Script=Han}/u);
});
