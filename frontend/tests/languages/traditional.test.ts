import { describe, expect, it } from "vitest";
import simplified from "virtual:languages/texts-zh-Hans";
import traditional from "virtual:languages/texts-zh-Hant";
import { TERMS, converted, toTraditional } from "../../languages/traditional.ts";

const all = (texts: Readonly<Record<string, Readonly<Record<string, string>>>>): string[] =>
  Object.values(texts).flatMap((table) => Object.values(table));

describe("traditional Chinese", () => {
  it.each([
    ["此会话中的文件夹", "此工作階段中的資料夾"],
    ["移除此设备", "移除此裝置"],
    ["输入 {0} 个词元", "輸入 {0} 個詞元"],
    ["在“设备”中显示", "在「裝置」中顯示"],
    ["由子代理提出", "由子代理程式提出"],
  ])("of %j is %j, as it is written in Taiwan", (before, after) => {
    expect(toTraditional(before)).toBe(after);
  });

  it("has no character left that only simplified Chinese has", () => {
    for (const text of all(traditional)) expect(toTraditional(text)).toBe(text);
  });

  it("has a use for each of the terms of ours", () => {
    const text = all(simplified).map(converted).join("\n");
    expect(TERMS.map(([before]) => before).filter((before) => !text.includes(before))).toEqual([]);
  });

  it("has the places and the marks of the simplified texts", () => {
    const marks = (text: string): string[] => text.match(/\{\d\}|`[^`]*`|[\w/.-]+/g) ?? [];
    expect(all(traditional).map(marks)).toEqual(all(simplified).map(marks));
  });
});
