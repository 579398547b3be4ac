// The texts of phones.

import { textsOf } from "../words.ts";

export const TABLE = {
  backToInbox: ["Back to the inbox", "返回收件箱"],
  moreActions: ["More answers and actions", "更多回答和操作"],
  showFacts: ["Show what it is about", "显示相关信息"],
  editNote: ["your text is what is written", "将写入您的文本"],
  undoNote: ["shows the proposed text again", "重新显示建议的文本"],
  commentLine: ["Comment on a line", "评论一行"],
  commentNote: ["goes back with the answer", "随回答一起发回"],
  rejectNote: ["all open questions of this turn, with your words", "本轮所有未回答的问题,并附上您的话"],
  cancelNote: ["ends the call without an answer", "不作回答并结束调用"],
  gestures: [
    "With a finger: swipe a hunk right to accept it, left to keep it as it was. Hold a line to comment on it, tap twice to edit.",
    "用手指:在更改块上右滑为接受,左滑为保留原样。按住一行可评论,轻点两下可编辑。",
  ],
  later: ["Later", "稍后"],
  laterNote: ["goes to the end of the list on this device", "移到此设备列表的末尾"],
  notLater: ["Back to its place", "放回原位"],
  notLaterNote: ["stands in the list by its time again", "重新按时间排列"],
  openSession: ["Open the session", "打开会话"],
  atThisCall: ["{0}, at this call", "{0},位于此调用处"],
  copyAddress: ["Copy the address", "复制地址"],
  whyAll: ["Why? Rejects all questions of this turn.", "为什么?本轮所有未回答的问题都会被拒绝。"],
  whyTo: ["Why? It goes back to {0}.", "为什么?会送回 {0}。"],
} as const;

export type PhoneWord = keyof typeof TABLE;

export const phoneWord = textsOf<PhoneWord>(TABLE);
