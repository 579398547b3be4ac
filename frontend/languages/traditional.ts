// Derives traditional Chinese, as developers in Taiwan write it, from simplified Chinese: OpenCC with its phrases, then
// the terms that it does not know.

import { ConverterFactory } from "opencc-js/core";
import { from, to } from "opencc-js/preset/cn2t";

/** Terms that replace others after the conversion, both in traditional Chinese. */
export const TERMS: readonly (readonly [before: string, after: string])[] = [
  ["會話", "工作階段"],
  ["子代理", "子代理程式"],
  ["代理", "代理程式"],
  ["收件箱", "收件匣"],
  ["歸檔", "封存"],
  ["撤銷", "復原"],
  ["收回撤銷", "取消復原"],
  ["單元格", "儲存格"],
  ["文本", "文字"],
  ["臺", "台"],
  ["併為", "並為"],
  ["訪問", "存取"],
  ["終端", "終端機"],
  ["二維碼", "二維條碼"],
  ["當前", "目前"],
  ["許可權", "權限"],
  ["跟蹤", "追蹤"],
  ["計劃", "計畫"],
  ["連線伺服器", "連線到伺服器"],
  ["設定檔案", "設定檔"],
  ["批准", "核准"],
  ["斷開", "中斷"],
  ["獲取", "取得"],
  ["提供方", "提供者"],
  ["“", "「"],
  ["”", "」"],
];

const TERM = new Map(TERMS);
const ANY_TERM = new RegExp(
  TERMS.map(([before, after]) =>
    // A term that is longer afterwards stays as it is where it is whole already.
    after.startsWith(before) ? `${before}(?!${after.slice(before.length)})` : before,
  )
    .sort((one, other) => other.length - one.length)
    .join("|"),
  "g",
);

let convert: ((text: string) => string) | undefined;

/** Convert a text by OpenCC alone. The first call takes a second, as it loads the dictionaries. */
export function converted(text: string): string {
  convert ??= ConverterFactory(from.cn ?? [], to.twp ?? []);
  return convert(text);
}

/** Convert a text from simplified Chinese. */
export function toTraditional(text: string): string {
  return converted(text).replace(ANY_TERM, (term) => TERM.get(term) ?? term);
}
