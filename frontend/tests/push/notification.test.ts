import { expect, test } from "vitest";
import {
  type NotificationData,
  type Place,
  answeredOf,
  endOf,
  kindOf,
  questionOf,
  summaryOf,
  summaryTag,
  tagOf,
} from "../../src/push/notification.ts";
import { languageOf } from "../../src/push/notification-words.ts";

const PLACE: Place = { page: "/ui/", language: "en-GB", room: 2, now: 5 };
const COMMAND = {
  kind: "question",
  key: "task/call-1",
  agent: "Gemini CLI",
  session: "Feet beside metres",
  waiting: 1,
  asked: 1000,
  about: { kind: "command", text: "npm test", folder: "~/harbour" },
  answers: { reject: "no-token", allow: "yes-token" },
  language: "en",
};
const AT = 1_795_000_000;
const CLOCK = new Date(AT * 1000).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const body = (about: object, language = "en"): string =>
  questionOf({ ...COMMAND, about, session: "", language }, PLACE).options.body;
const actions = (message: object, room = 2): string[] =>
  questionOf({ ...COMMAND, ...message }, { ...PLACE, room }).options.actions.map(({ title }) => title);

test("a command that is shown whole has the words and buttons that were drawn", () => {
  const { title, options } = questionOf(COMMAND, PLACE);
  expect(title).toBe("Gemini CLI asks");
  expect(options.body).toBe("Run npm test in ~/harbour, once\nFeet beside metres");
  expect(options.actions).toEqual([
    { action: "reject", title: "Reject" },
    { action: "allow", title: "Allow once" },
  ]);
  expect(options).toMatchObject({ tag: "question:/ui/task/call-1", timestamp: 1_000_000, lang: "en", silent: false });
  expect(options.data.answers).toEqual({ reject: "no-token", allow: "yes-token" });
});

test("buttons that answer are there only if all of them fit", () => {
  expect(actions({}, 3)).toEqual(["Reject", "Allow once", "Open"]);
  expect(actions({}, 1)).toEqual(["Open"]);
  expect(actions({}, 0)).toEqual([]);
  expect(questionOf(COMMAND, { ...PLACE, room: 1 }).options.data.answers).toEqual({});
  expect(actions({ answers: {} })).toEqual(["Open"]);
  expect(actions({ answers: { allow: "t" } })).toEqual(["Allow once", "Open"]);
});

test.each([
  { ...COMMAND.about, text: "npm\u0007test" },
  { ...COMMAND.about, text: "npm \u202etset" },
  { ...COMMAND.about, text: " npm test" },
  { ...COMMAND.about, text: "x".repeat(241) },
  { ...COMMAND.about, folder: "~/har\nbour" },
  { ...COMMAND.about, kind: "change" },
  { ...COMMAND.about, text: 7 },
  null,
])("what would not be shown as it is cannot be answered: %j", (about) => {
  const { options } = questionOf({ ...COMMAND, about }, PLACE);
  expect(options.actions).toEqual([{ action: "open", title: "Open" }]);
  expect(options.data.answers).toEqual({});
  expect(options.body).not.toMatch(/\p{Cc}(?<!\n)|\u202e/u);
});

test("other questions say what is asked in general", () => {
  const [added, removed, text, folder] = [12, 6, "schedule.py", "~/harbour"];
  expect(body({ kind: "change", text, folder, added, removed })).toBe("Change schedule.py, +12 \u22126, in ~/harbour");
  expect(body({ kind: "change", text: "/etc/hosts" })).toBe("Change /etc/hosts");
  expect(body({ kind: "create", text, folder, added: 28 })).toBe("Create schedule.py, 28 lines, in ~/harbour");
  expect(body({ kind: "create", text, added: 1 })).toBe("Create schedule.py, one line");
  expect(body({ kind: "long", text: "docker", folder, length: 412 })).toBe(
    "Run docker in ~/harbour. The command has 412 characters; read it whole before you answer.",
  );
  expect(body({ kind: "long", folder, length: 12 })).toContain("Run a command in ~/harbour.");
  expect(body({ kind: "call", text: "create", folder: "tickets" })).toBe("Call create of tickets");
  expect(body({ kind: "model", text: "docs-index" })).toBe("docs-index asks your model");
  expect(body({ kind: "question", text: "Which release?" })).toBe("Which release?");
  expect(body({ kind: "other", text: "restore", folder })).toBe("Use restore, in ~/harbour");
  expect(body({ kind: "of a later version" })).toBe("A question waits for you");
});

test("a message of another form is a question all the same", () => {
  expect(kindOf({})).toBe("question");
  expect(questionOf({ agent: "\u202e\n" }, PLACE)).toMatchObject({
    title: "Isthmus asks",
    options: { body: "A question waits for you", data: { key: "", answers: {} } },
  });
});

test("notifications speak the device's language, else the browser's", () => {
  expect(body(COMMAND.about, "zh-Hans")).toBe("在 ~/harbour 运行 npm test,仅一次");
  expect(body(COMMAND.about, "zh-Hant")).toBe("在 ~/harbour 執行 npm test,僅一次");
  expect(questionOf({ ...COMMAND, language: "zh-Hant" }, PLACE).options.actions.map(({ title }) => title)).toEqual([
    "拒絕",
    "允許一次",
  ]);
  const tags = {
    "zh-HK": "zh-Hant",
    "zh-Hant-SG": "zh-Hant",
    zh: "zh-Hans",
    "zh-Hans-HK": "zh-Hans",
    "de-DE": "en",
    "": "en",
  };
  for (const [tag, language] of Object.entries(tags)) expect(languageOf("", tag)).toBe(language);
});

test("many questions are one notification, which counts down in silence", () => {
  const many = summaryOf({ kind: "many", waiting: 5, agent: "Isthmus" }, PLACE);
  expect(many).toMatchObject({ title: "5 questions wait", options: { tag: summaryTag("/ui/"), silent: false } });
  const left = (waiting: number) => summaryOf({ kind: "ended", waiting, agent: "Isthmus" }, PLACE);
  expect(left(1)).toMatchObject({ title: "1 question waits", options: { silent: true } });
  expect(left(0)).toMatchObject({ title: "No question waits any more", options: { actions: [], body: "" } });
});

test("the end of a question says who was first, in the place of the question", () => {
  const ended = { ...COMMAND, kind: "ended", at: AT, by: "Firefox on Linux" };
  expect(endOf(ended, PLACE)).toMatchObject({
    title: `Answered by Firefox on Linux, ${CLOCK}`,
    options: { tag: tagOf(COMMAND.key, "/ui/"), silent: true, actions: [], body: "Run npm test in ~/harbour, once" },
  });
  expect(endOf({ ...ended, by: "" }, PLACE).title).toBe(`Waits no more, ${CLOCK}`);
  expect(endOf({ ...ended, here: true }, PLACE).title).toBe(`Answered on this device, ${CLOCK}`);
});

const { data } = questionOf(COMMAND, PLACE).options;
const pressed = (answer: { status: number; body: Record<string, unknown> } | undefined, of: NotificationData = data) =>
  answeredOf(of, answer, PLACE);

test("after a press the notification says what became of the answer", () => {
  const outcome = { by: "Phone", at: AT, act: "allow", own: true };
  expect(pressed({ status: 200, body: { outcome } })).toMatchObject({
    title: `Allowed, ${CLOCK}`,
    options: { tag: tagOf(COMMAND.key, "/ui/"), actions: [], data: { answers: {}, key: COMMAND.key } },
  });
  expect(pressed({ status: 409, body: { outcome: { ...outcome, act: "reject" } } }).title).toBe(`Rejected, ${CLOCK}`);
  const other = { by: "Laptop", at: AT, act: null, own: false };
  expect(pressed({ status: 409, body: { outcome: other } }).title).toBe(`Answered by Laptop, ${CLOCK}`);
});

test("what cannot be answered is opened, and what was not sent can be pressed again", () => {
  for (const [status, title] of [
    [403, "Cannot be answered here: open"],
    [409, "Asks for something else now: open"],
  ] as const) {
    const shown = pressed({ status, body: { error: "why", outcome: null } });
    expect(shown.title).toBe(title);
    expect(shown.options.data.answers).toEqual({});
    expect(shown.options.actions).toEqual([{ action: "open", title: "Open" }]);
  }
  for (const answer of [undefined, { status: 503, body: {} }, { status: 200, body: {} }]) {
    const shown = pressed(answer);
    expect(shown.title).toBe("Could not be sent: open");
    expect(shown.options.data).toEqual(data);
    expect(shown.options.actions).toEqual(data.actions);
  }
});
