// The texts of the frame around all pages, and of the figures beside a session.

import { textsOf } from "../words.ts";

export const TABLE = {
  you: ["you", "您"],
  oneDevice: ["1 device", "1 台设备"],
  countDevices: ["{0} devices", "{0} 台设备"],
  newShort: ["New", "新会话"],
  reconnects: ["Reconnecting", "正在重新连接"],
  reconnectsText: [
    "The server is not reached. What you see may be old, and answers wait until it is.",
    "连不上服务器。所见内容可能不是最新,恢复后才能回答。",
  ],
  // keys, as the status line names them
  move: ["move", "移动"],
  allow: ["allow", "允许"],
  reject: ["reject", "拒绝"],
  edit: ["edit", "编辑"],
  prompt: ["prompt", "输入"],
  model: ["model", "模型"],
  changes: ["changes", "改动"],
  again: ["compare again", "重新比较"],
  view: ["view", "视图"],
  search: ["search", "搜索"],
  mention: ["mention", "提及"],
  leave: ["close", "关闭"],
  hunk: ["hunk", "改动"],
  turn: ["turn", "轮次"],
  everywhere: ["Everywhere", "所有页面"],
  inInbox: ["Inbox", "收件箱"],
  inQuestion: ["A question", "问题"],
  inEdit: ["A change", "改动"],
  inFilesOfOne: ["Several files of an agent", "代理的多个文件"],
  inSession: ["A session", "会话"],
  inChanges: ["Changes of a session", "会话的改动"],
  inHistory: ["History", "历史"],
  inFiles: ["Files", "文件"],
  inWritten: ["Written without asking", "未经询问写入"],
  // the list of all actions
  actions: ["All actions", "所有操作"],
  actionsHint: ["Go to a page or session, or do something here", "转到页面或会话,或执行此处的操作"],
  noAction: ["Nothing has these words.", "没有符合的内容。"],
  // toasts
  toastDone: ["Done: {0}", "已完成:{0}"],
  toastFailed: ["Failed: {0}", "失败:{0}"],
  toastCanceled: ["Cancelled: {0}", "已取消:{0}"],
  toastAnswered: ["{0}: {1}", "{0}:{1}"],
  dismiss: ["Dismiss", "关闭"],
  show: ["Show", "显示"],
  messages: ["Messages", "消息"],
  // an address that leads nowhere
  noPageText: ["The link is incomplete, or of another version.", "链接不完整,或属于其他版本。"],
  toHistory: ["Go to the history", "转到历史"],
  // figures
  turnFor: ["turn {0} \u00b7 {1}", "第 {0} 轮 \u00b7 {1}"],
  contextTitle: ["Context", "上下文"],
  contextOf: ["{0} of {1} tokens", "{0} / {1} 个词元"],
  contextCount: ["{0} tokens; the model\u2019s limit is unknown", "{0} 个词元;模型上限未知"],
  instructions: ["Instructions and tools", "说明与工具"],
  contents: ["Files and output", "文件与输出"],
  wordsOf: ["Words, yours and its", "文字,您的和它的"],
  estimated: ["The parts are estimates.", "各部分为估计值。"],
  sessionCost: ["Cost of this session", "本次会话的费用"],
  costUnknown: ["unknown", "未知"],
  ofAllowed: ["of {0} allowed", "上限 {0}"],
  andMore: ["and more", "以上"],
  noPrice: ["No price is known for {0}.", "{0} 的价格未知。"],
  tokensIn: ["Tokens in", "输入词元"],
  tokensCached: ["of them cached", "其中来自缓存"],
  tokensOut: ["Tokens out", "输出词元"],
  lastTurn: ["Last turn", "最近一轮"],
  ifAllowed: ["{0}, if you allow it", "{0},若您允许"],
  figure: ["{0} tokens \u00b7 {1}", "{0} 个词元 \u00b7 {1}"],
  figureToday: ["{0} tokens \u00b7 {1} today", "今日 {0} 个词元 \u00b7 {1}"],
  priceOf: ["{0} in, {1} out per million", "每百万词元:输入 {0},输出 {1}"],
  priceUnknown: ["price unknown", "价格未知"],
} as const;

export type FrameWord = keyof typeof TABLE;

export const f = textsOf(TABLE);
