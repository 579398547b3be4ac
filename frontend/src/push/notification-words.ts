// Texts of notifications, in English, simplified and traditional Chinese. A service worker shares no code with the page.

const TABLE = {
  asks: ["{0} asks", "{0} 询问", "{0} 詢問"],
  waits: ["A question waits for you", "有一个问题等待您处理", "有一個問題等待您處理"],
  command: ["Run {0} in {1}, once", "在 {1} 运行 {0},仅一次", "在 {1} 執行 {0},僅一次"],
  long: [
    "Run {0} in {1}. The command has {2} characters; read it whole before you answer.",
    "在 {1} 运行 {0}。命令有 {2} 个字符,请完整阅读后再回答。",
    "在 {1} 執行 {0}。命令有 {2} 個字元,請完整閱讀後再回答。",
  ],
  aCommand: ["a command", "一个命令", "一個命令"],
  change: ["Change {0}", "修改 {0}", "修改 {0}"],
  create: ["Create {0}", "新建 {0}", "新建 {0}"],
  lines: ["{0}, {1} lines", "{0},{1} 行", "{0},{1} 行"],
  oneLine: ["{0}, one line", "{0},1 行", "{0},1 行"],
  counts: ["{0}, +{1} \u2212{2}", "{0},+{1} \u2212{2}", "{0},+{1} \u2212{2}"],
  within: ["{0}, in {1}", "{0},位于 {1}", "{0},位於 {1}"],
  call: ["Call {0} of {1}", "调用 {1} 的 {0}", "呼叫 {1} 的 {0}"],
  model: ["{0} asks your model", "{0} 想使用您的模型", "{0} 想使用您的模型"],
  use: ["Use {0}", "使用 {0}", "使用 {0}"],
  many: ["{0} questions wait", "{0} 个问题等待您处理", "{0} 個問題等待您處理"],
  oneWaits: ["1 question waits", "1 个问题等待您处理", "1 個問題等待您處理"],
  noneWaits: ["No question waits any more", "已没有等待处理的问题", "已沒有等待處理的問題"],
  allow: ["Allow once", "允许一次", "允許一次"],
  reject: ["Reject", "拒绝", "拒絕"],
  open: ["Open", "打开", "開啟"],
  allowed: ["Allowed, {0}", "已允许,{0}", "已允許,{0}"],
  rejected: ["Rejected, {0}", "已拒绝,{0}", "已拒絕,{0}"],
  answeredBy: ["Answered by {0}, {1}", "已由 {0} 回答,{1}", "已由 {0} 回答,{1}"],
  answeredHere: ["Answered on this device, {0}", "已在此设备上回答,{0}", "已在此裝置上回答,{0}"],
  ended: ["Waits no more, {0}", "不再等待,{0}", "不再等待,{0}"],
  notSent: ["Could not be sent: open", "无法发送:请打开", "無法傳送:請開啟"],
  changed: ["Asks for something else now: open", "问题已改变:请打开", "問題已改變:請開啟"],
  refused: ["Cannot be answered here: open", "无法在此回答:请打开", "無法在此回答:請開啟"],
} as const;

export type Language = "en" | "zh-Hans" | "zh-Hant";
export type NotificationWord = keyof typeof TABLE;

const COLUMNS: Record<Language, 0 | 1 | 2> = { en: 0, "zh-Hans": 1, "zh-Hant": 2 };

/** Return the language of a notification: the one that the device told the server, else the browser's. */
export function languageOf(told: unknown, browser: string): Language {
  if (told === "en" || told === "zh-Hans" || told === "zh-Hant") return told;
  if (!/^zh\b/i.test(browser)) return "en";
  return /-(hant|tw|hk|mo)\b/i.test(browser) && !/-hans\b/i.test(browser) ? "zh-Hant" : "zh-Hans";
}

/** Return a text in a language, with its places filled. */
export function say(language: Language, word: NotificationWord, ...values: (string | number)[]): string {
  return TABLE[word][COLUMNS[language]].replace(/\{(\d)\}/g, (_, at: string) => String(values[Number(at)] ?? ""));
}
