// Notifications from the messages of the server: what they say, and what their buttons do. Pure.
//
// Messages are facts (docs/reference/workbench.md). Buttons that answer are there only for a command that is shown as the
// server gave it; whatever else asks is opened.

import { type Language, languageOf, say } from "./notification-words.ts";

export type Act = "allow" | "reject";

/** What a notification keeps for the time when it is pressed. */
export interface NotificationData {
  /** Key of the question in the page; empty if the inbox is to be opened. */
  key: string;
  /** Tokens of the buttons. */
  answers: Partial<Record<Act, string>>;
  body: string;
  language: Language;
  actions: NotificationAction[];
}

export interface NotificationAction {
  action: Act | "open";
  title: string;
}

export interface Shown {
  title: string;
  options: {
    body: string;
    tag: string;
    icon: string;
    lang: string;
    silent: boolean;
    timestamp: number;
    actions: NotificationAction[];
    data: NotificationData;
  };
}

/** What the browser and the page give: its path, the browser's language, and the number of buttons that fit. */
export interface Place {
  page: string;
  language: string;
  room: number;
  now: number;
}

type Json = Record<string, unknown>;

const SUMMARY = "questions:";

/** Tag of the notification of a question: a later one takes its place. */
export function tagOf(key: string, page: string): string {
  return `question:${page}${key}`;
}

/** Tag of the notification that stands for many questions. */
export function summaryTag(page: string): string {
  return SUMMARY + page;
}

/** Return what a message is about: a question, many, or the end of one; any other form is a question without facts. */
export function kindOf(message: Json): "question" | "many" | "ended" {
  return message.kind === "many" || message.kind === "ended" ? message.kind : "question";
}

export function keyOf(message: Json): string {
  return typeof message.key === "string" ? message.key : "";
}

/** Return the notification of a question that waits. */
export function questionOf(message: Json, place: Place): Shown {
  const language = languageOf(message.language, place.language);
  const key = keyOf(message);
  const agent = line(message.agent) || "Isthmus";
  const about = factsOf(message, language);
  const session = line(message.session);
  const body = [about || say(language, "waits"), session].filter(Boolean).join("\n");
  const answers = answersOf(message);
  const actions = actionsOf(answers, language, place.room);
  return {
    title: say(language, "asks", agent),
    options: options(place, {
      tag: tagOf(key, place.page),
      silent: false,
      at: message.asked,
      actions,
      data: { key, answers: actions.some(({ action }) => action === "allow") ? answers : {}, body, language, actions },
    }),
  };
}

/** Return the notification that many questions wait, or how many are left of them. */
export function summaryOf(message: Json, place: Place): Shown {
  const language = languageOf(message.language, place.language);
  const waiting = count(message.waiting) ?? 0;
  const word = waiting > 1 ? "many" : waiting ? "oneWaits" : "noneWaits";
  const body = waiting ? say(language, "asks", line(message.agent) || "Isthmus") : "";
  const actions = waiting ? actionsOf({}, language, place.room) : [];
  return {
    title: say(language, word, waiting),
    options: options(place, {
      tag: summaryTag(place.page),
      silent: message.kind !== "many",
      at: undefined,
      actions,
      data: { key: "", answers: {}, body, language, actions },
    }),
  };
}

/** Return the notification of a question that was answered, or that waits no more. */
export function endOf(message: Json, place: Place): Shown {
  const language = languageOf(message.language, place.language);
  const title = endTitle(message, language, message.here === true);
  return settled(
    { key: keyOf(message), answers: {}, body: factsOf(message, language), language, actions: [] },
    title,
    place,
  );
}

/** Return the notification in place of one whose button was pressed; `answer` is the server's, undefined without one. */
export function answeredOf(
  data: NotificationData,
  answer: { status: number; body: Json } | undefined,
  place: Place,
): Shown {
  const { language } = data;
  const outcome = answer?.body.outcome;
  if (answer && (answer.status === 200 || answer.status === 409) && outcome && typeof outcome === "object") {
    const found = outcome as Json;
    return settled({ ...data, answers: {}, actions: [] }, endTitle(found, language, found.own === true), place);
  }
  const isFinal = answer?.status === 403 || answer?.status === 409;
  if (!isFinal) return settled(data, say(language, "notSent"), place);
  const actions = actionsOf({}, language, place.room);
  return settled(
    { ...data, answers: {}, actions },
    say(language, answer.status === 409 ? "changed" : "refused"),
    place,
  );
}

function settled(data: NotificationData, title: string, place: Place): Shown {
  const tag = tagOf(data.key, place.page);
  return { title, options: options(place, { tag, silent: true, at: undefined, actions: data.actions, data }) };
}

function options(
  place: Place,
  given: { tag: string; silent: boolean; at: unknown; actions: NotificationAction[]; data: NotificationData },
): Shown["options"] {
  const { tag, silent, at, actions, data } = given;
  return {
    body: data.body,
    tag,
    icon: `${place.page}icon-192.png`,
    lang: data.language,
    silent,
    timestamp: typeof at === "number" ? at * 1000 : place.now,
    actions,
    data,
  };
}

/** Return how a question ended: by this device, another one or another surface, or by nobody. */
function endTitle(outcome: Json, language: Language, isOwn: boolean): string {
  const at = clock(outcome.at, language);
  if (isOwn && outcome.act === "allow") return say(language, "allowed", at);
  if (isOwn && outcome.act === "reject") return say(language, "rejected", at);
  if (isOwn) return say(language, "answeredHere", at);
  const by = line(outcome.by);
  return by ? say(language, "answeredBy", by, at) : say(language, "ended", at);
}

/** Return what is asked, in words; empty if it is not known. */
function factsOf(message: Json, language: Language): string {
  const about = (message.about && typeof message.about === "object" ? message.about : {}) as Json;
  const [text, folder] = [line(about.text), line(about.folder)];
  const [added, removed] = [count(about.added), count(about.removed)];
  const place = (words: string): string => (folder ? say(language, "within", words, folder) : words);
  switch (about.kind) {
    case "command":
      return text ? say(language, "command", text, folder) : "";
    case "long":
      return say(language, "long", text || say(language, "aCommand"), folder, count(about.length) ?? "?");
    case "change": {
      const words = say(language, "change", text);
      return place(
        added === undefined || removed === undefined ? words : say(language, "counts", words, added, removed),
      );
    }
    case "create": {
      const words = say(language, "create", text);
      if (added === undefined) return place(words);
      return place(added === 1 ? say(language, "oneLine", words) : say(language, "lines", words, added));
    }
    case "call":
      return say(language, "call", text, folder);
    case "model":
      return say(language, "model", text);
    case "question":
      return text;
    case "other":
      return place(say(language, "use", text));
    default:
      return "";
  }
}

/** Return the tokens of a message; none if the command would not be shown as the server gave it. */
function answersOf(message: Json): Partial<Record<Act, string>> {
  const about = (message.about && typeof message.about === "object" ? message.about : {}) as Json;
  const given = (message.answers && typeof message.answers === "object" ? message.answers : {}) as Json;
  if (about.kind !== "command" || about.text !== line(about.text) || about.folder !== line(about.folder)) return {};
  return {
    ...(typeof given.reject === "string" ? { reject: given.reject } : {}),
    ...(typeof given.allow === "string" ? { allow: given.allow } : {}),
  };
}

/** Return the buttons: those that answer, if all of them fit, and one that opens the question, if there is room. */
function actionsOf(answers: Partial<Record<Act, string>>, language: Language, room: number): NotificationAction[] {
  const acts = (["reject", "allow"] as const).filter((act) => answers[act]);
  const fitting: (Act | "open")[] = acts.length <= room ? [...acts, "open"] : ["open"];
  return fitting.slice(0, room).map((action) => ({ action, title: say(language, action) }));
}

/** Return a text in one line without characters that do not show. */
function line(value: unknown): string {
  if (typeof value !== "string") return "";
  return value
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ")
    .trim()
    .slice(0, 240);
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}

function clock(at: unknown, language: Language): string {
  const date = new Date(typeof at === "number" ? at * 1000 : Date.now());
  return date.toLocaleTimeString(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}
