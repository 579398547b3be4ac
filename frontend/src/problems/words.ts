// The texts of refusals: what happened, and what to do. {0} is what the server says, where only it knows the reason.

import { textsOf } from "../words.ts";

export const TABLE = {
  noReach: ["The server cannot be reached. Try again.", "无法连接服务器,请重试。"],
  // any request
  oldPage: [
    "The server does not understand this request. Load the page again: it may be of another version.",
    "服务器不理解此请求。请重新加载页面:页面可能属于其他版本。",
  ],
  notFound: ["The server does not have this.", "服务器上没有此内容。"],
  tooLarge: ["This is larger than the server accepts. Send less at once.", "内容超过服务器接受的大小,请减少后再发送。"],
  tooSlow: ["The request took too long to arrive. Try again.", "请求送达时间过长,请重试。"],
  tooMany: ["You have sent too many requests. Try again in a minute.", "您的请求过多,请一分钟后重试。"],
  tooManyStreams: [
    "Too many pages of yours are open. Close one, then load this page again.",
    "您打开的页面过多。请关闭一个,然后重新加载此页面。",
  ],
  unavailable: ["The server cannot do this at the moment. Try again soon.", "服务器暂时无法执行此操作,请稍后重试。"],
  failed: ["The server failed to do this. Its log has the details.", "服务器执行失败,详情见服务器日志。"],
  notPaired: ["This browser is not paired any more. Pair it again.", "此浏览器已不再处于配对状态,请重新配对。"],
  ownerOnly: ["Only the owner of this server can do this.", "只有此服务器的所有者才能执行此操作。"],
  pairedOnly: [
    "Only a paired browser can do this. Pair this one.",
    "只有已配对的浏览器才能执行此操作,请配对此浏览器。",
  ],
  // devices
  wrongCode: [
    "This code is wrong, was used, or has expired. Make a new one on a paired device.",
    "此配对码有误、已被使用或已过期。请在已配对的设备上生成新的配对码。",
  ],
  tooManyCodes: [
    "Too many wrong codes were typed. Wait a minute, then try again.",
    "错误的配对码过多,请一分钟后重试。",
  ],
  codeWithdrawn: [
    "The device that made this code was removed. Make a new code on another device.",
    "生成此配对码的设备已被移除。请在其他设备上生成新的配对码。",
  ],
  tooManyDevices: [
    "No further device can be paired. Remove one that you do not use, then make a new code.",
    "无法再配对设备。请移除一台不用的设备,然后生成新的配对码。",
  ],
  noDevice: ["This device was removed already.", "此设备已被移除。"],
  devicesUnusable: [
    "The server cannot read or change its list of devices. Its log says why.",
    "服务器无法读取或更改设备列表,原因见服务器日志。",
  ],
  // sessions and their messages
  noSession: ["There is no such session, or it is not yours.", "没有此会话,或不属于您。"],
  messageGone: ["This message was sent already. It cannot be changed.", "此消息已发送,无法再更改。"],
  messageNotKept: ["The message was not queued: {0}", "消息未能排队:{0}"],
  messageNotSent: ["The message was not sent: {0}", "消息未发送:{0}"],
  noPicture: ["This image is gone, or its file cannot be read.", "此图片已不存在,或其文件无法读取。"],
  notDrawn: ["This is not an image that browsers show.", "这不是浏览器可以显示的图片。"],
  noTask: ["There is no such turn any more, or it is not yours.", "此轮次已不存在,或不属于您。"],
  notCancelable: ["This turn cannot be stopped: {0}", "无法停止此轮次:{0}"],
  notOpen: ["This takes no further message: {0}", "无法再接收消息:{0}"],
  notTaken: ["The server did not accept this: {0}", "服务器未接受此内容:{0}"],
  notSupported: ["The agent does not accept this kind of content: {0}", "代理不接受此类内容:{0}"],
  limitReached: ["A limit is reached: {0}", "已达到上限:{0}"],
  // folders, tools and settings
  notShown: ["This is not shown to you: {0}", "此内容不向您显示:{0}"],
  trustChanged: [
    "The files of this folder have changed. Nothing was stored: read the question again.",
    "此文件夹中的文件已改变。未保存任何决定:请重新查看问题。",
  ],
  trustNotStored: ["Your decision could not be stored: {0}", "无法保存您的决定:{0}"],
  // notifications
  noNotifications: ["This browser cannot be notified: {0}", "无法通知此浏览器:{0}"],
  notificationsOff: ["This device gets no notifications. Switch them on first.", "此设备未开启通知,请先开启。"],
  notificationSpent: [
    "This notification does not answer the question any more. Open the question.",
    "此通知已无法回答该问题,请打开问题。",
  ],
  // companions
  companionEnded: [
    "The companion has ended. Its agent asks in its own terminal.",
    "伴随程序已结束,代理会在其终端中询问。",
  ],
  companionRefused: ["The companion did not do this: {0}", "伴随程序未执行此操作:{0}"],
  changedMeanwhile: [
    "This has changed since you saw it. Nothing was decided: look again.",
    "您查看之后内容已改变。未作出决定,请再看一次。",
  ],
  questionGone: [
    "This question was answered elsewhere, or its agent took it back.",
    "此问题已在别处回答,或已被代理撤回。",
  ],
} as const;

export type ProblemWord = keyof typeof TABLE;

export const problemText = textsOf<ProblemWord>(TABLE);
