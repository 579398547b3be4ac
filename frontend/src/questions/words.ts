// The words of questions and their answers, in English and Chinese.

import { textsOf } from "../words.ts";

export const TABLE = {
  // answers, by their kinds
  allowOnce: ["Allow once", "允许一次"],
  allowChanges: ["Allow these changes", "允许这些更改"],
  reject: ["Reject", "拒绝"],
  rejectAsk: ["Reject\u2026", "拒绝\u2026"],
  noneOfThese: ["None of these", "都不选"],
  noAnswer: ["No answer", "不回答"],
  decline: ["Decline", "不回答"],
  dismiss: ["Dismiss", "忽略"],
  send: ["Send", "发送"],
  goOn: ["Go on", "继续"],
  stop: ["Stop", "停止"],
  openThePage: ["Open the page", "打开页面"],
  iGoThere: ["I will open it", "我自己打开"],
  iAmDone: ["I am done", "我已完成"],
  giveUp: ["Give up", "放弃"],
  allowTool: ["Allow {0}", "允许 {0}"],
  allowServer: ["Allow all tools of {0}", "允许 {0} 的所有工具"],
  allowKept: ["Allow {0} from now on", "从现在起允许 {0}"],
  allowPrefix: ["Allow {0} \u2026", "允许 {0} \u2026"],
  allowCommand: ["Allow exactly this command", "仅允许此命令"],
  allowFile: ["Allow this file", "允许此文件"],
  allowFolder: ["Allow this folder", "允许此文件夹"],
  // how far an answer reaches, behind it
  inSession: ["this session", "本次会话"],
  inFolder: ["in this folder, this session", "此文件夹，本次会话"],
  untilChanged: ["until its server changes it", "直到其服务器更改它"],
  // what is known to make a call risky
  deletes: ["deletes", "会删除"],
  network: ["reaches the network", "会访问网络"],
  noSandbox: ["not in a sandbox", "不在沙箱中"],
  secrets: ["may hold secrets", "可能含有机密"],
  startsPrograms: ["starts programs", "会启动程序"],
  networkShort: ["network", "网络"],
  noSandboxShort: ["no sandbox", "无沙箱"],
  secretsShort: ["secrets", "机密"],
  noArguments: ["The call has no arguments.", "此调用没有参数。"],
  // words of a rejection
  rejectWithout: ["Reject without", "不附说明拒绝"],
  whatToKnow: ["What should {0} know? It goes back as the reason.", "{0} 应该知道什么？您的话会作为理由发回。"],
  // an address of a question that does not wait
  pastTitle: ["This question is no longer open", "此问题已不再等待回答"],
  pastUnknown: ["No such question", "没有此问题"],
  pastUnknownWhy: [
    "The link is incomplete, or the question was removed with its session.",
    "链接不完整，或问题已随会话一起删除。",
  ],
  pastNotLoaded: ["The question was not loaded", "未能加载此问题"],
  endedUnanswered: ["Its turn ended before anyone answered.", "无人回答，该轮次已结束。"],
  toSession: ["Open its session", "打开其会话"],
  toSessionOf: ["Open the session: {0}", "打开会话：{0}"],
  toInbox: ["Go to the inbox", "转到收件箱"],
  // the list
  newQuestion: ["1 new question", "1 个新问题"],
  newQuestions: ["{0} new questions", "{0} 个新问题"],
  all: ["All", "全部"],
  show: ["Show", "显示"],
  edits: ["Changes", "改动"],
  commands: ["Commands", "命令"],
  forms: ["Questions", "提问"],
  others: ["Other calls", "其他调用"],
  search: ["Search the questions", "搜索问题"],
  nothingFound: ["No question matches.", "没有符合的问题。"],
  showAll: ["Show all", "显示全部"],
  answeredHere: ["Answered while you are here", "您停留期间已回答"],
  youAnswered: ["You answered", "您已回答"],
  youChose: ["You: {0}", "您：{0}"],
  allAnswered: ["All {0} questions are answered.", "全部 {0} 个问题均已回答。"],
  oneAnswered: ["The question is answered.", "问题已回答。"],
  oneWorks: [
    "1 session is working. A question appears here and in the page\u2019s title.",
    "1 个会话正在进行。新问题会显示在这里和页面标题中。",
  ],
  someWork: [
    "{0} sessions are working. A question appears here and in the page\u2019s title.",
    "{0} 个会话正在进行。新问题会显示在这里和页面标题中。",
  ],
  notLoaded: ["The questions are not loaded: the server cannot be reached.", "未能加载问题：无法连接服务器。"],
  oneFileOf: ["1 file of {0}", "{0} 的 1 个文件"],
} as const;

export type QuestionWord = keyof typeof TABLE;

export const ask = textsOf<QuestionWord>(TABLE);
