import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { faultOf, hasFormat, progressOf } from "../../src/forms/checks.ts";
import { type Answer, type Field, formOf, type Form, NOTHING } from "../../src/forms/form.ts";
import { toLocal, toMoment } from "../../src/forms/moments.ts";
import { cancelOf, declineOf, repliesOf, valueOf } from "../../src/forms/replies.ts";
import type { ToolCall } from "../../src/server/protocol.ts";
import { asked, CHOICE, elicited, SEVERAL, TEXT, YES_NO } from "../support/forms.ts";

const form = (...calls: ToolCall[]): Form => {
  const found = formOf(calls);
  if (!found) throw new Error("expected a form");
  return found;
};
const all = (found: Form) => new Set(found.calls.map((call) => call.tool_call_id));
const chosen = (...values: string[]): Answer => ({ ...NOTHING, chosen: values });
const typed = (text: string): Answer => ({ ...NOTHING, text });
const own = (text: string, ...values: string[]): Answer => ({ chosen: values, text, isOwn: true });
const filled = (found: Form, ...answers: Answer[]) =>
  new Map(found.fields.map((field, at) => [field.key, answers[at] ?? NOTHING]));
const sent = (found: Form, ...answers: Answer[]) =>
  repliesOf(found, filled(found, ...answers), all(found)).map(({ optionId, content }) => [
    optionId,
    content === undefined ? undefined : optionId === "words" ? content : (JSON.parse(content) as unknown),
  ]);

describe("what is sent to an agent", () => {
  it("is the option that was chosen, or the text of a document", () => {
    const found = form(asked("1", CHOICE), asked("2", SEVERAL), asked("3", TEXT), asked("4", YES_NO));
    expect(sent(found, chosen("UTC"), chosen("Harbour", "UTC"), typed("a\nb "), chosen("no"))).toEqual([
      ["choice_2", undefined],
      ["proceed_once", { answer: ["Harbour", "UTC"] }],
      ["proceed_once", { answer: "a\nb " }],
      ["choice_2", undefined],
    ]);
    expect(sent(found, own(" mine "), own("mine", "UTC"), typed(" "), chosen("yes"))).toEqual([
      ["words", "mine"],
      ["proceed_once", { answer: ["UTC", "mine"] }],
      ["proceed_once", { answer: null }],
      ["choice_1", undefined],
    ]);
  });

  it("is an answer for each call that is open, and for no other", () => {
    const found = form(asked("1", CHOICE), asked("2", YES_NO));
    expect(repliesOf(found, filled(found, chosen("UTC"), chosen("yes")), new Set(["2"]))).toEqual([
      { callId: "2", optionId: "choice_1", content: undefined },
    ]);
  });
});

describe("what is sent to a server", () => {
  it("is a document with all values, or the option of a single choice", () => {
    const properties = {
      'a"b': { type: "string" },
      n: { type: "integer" },
      sure: { type: "boolean" },
      one: { type: "string", oneOf: [{ const: "x" }, { const: "y" }] },
      more: { type: "array", items: { anyOf: [{ const: "x" }, { const: "y" }] } },
    };
    const found = form(elicited("1", { requested_schema: { properties } }));
    const answers = [typed("t"), typed("+007"), chosen("no"), chosen("y"), NOTHING];
    expect(sent(found, ...answers)).toEqual([["accept", { 'a"b': "t", n: 7, sure: false, one: "y", more: null }]]);
    const direct = form(elicited("1", { requested_schema: { properties: { one: properties.one } } }, true));
    expect(direct.fields[0]?.isRequired).toBe(true);
    expect(sent(direct, chosen("y"))).toEqual([["choice-2", undefined]]);
    const agree = form(elicited("1", { requested_schema: { properties: { sure: properties.sure } } }, true));
    expect(sent(agree, chosen("no"))).toEqual([["no", undefined]]);
  });

  it("keeps the digits of a number", () => {
    const properties = { n: { type: "integer" } };
    const [field] = form(elicited("1", { requested_schema: { properties } })).fields as [Field];
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (value) => {
        expect(valueOf(field, typed(String(value)))).toBe(String(value));
        expect(faultOf(field, typed(String(value)))).toBe("");
      }),
    );
  });

  it("of any valid number is JSON of it", () => {
    const [field] = form(elicited("1", { requested_schema: { properties: { n: { type: "number" } } } })).fields as [
      Field,
    ];
    fc.assert(
      fc.property(fc.stringMatching(/^[+-]?\d{1,9}(\.\d{1,9})?([eE][+-]?\d{1,2})?$/), (text) => {
        expect(faultOf(field, typed(` ${text} `))).toBe("");
        expect(JSON.parse(valueOf(field, typed(` ${text} `)))).toBe(Number(text));
      }),
    );
  });
});

it("a call goes on without an answer, or is cancelled", () => {
  expect([declineOf(asked("1", CHOICE))?.id, cancelOf(asked("1", CHOICE))]).toEqual(["cancel", undefined]);
  expect([declineOf(elicited("1", {}))?.id, cancelOf(elicited("1", {}))?.id]).toEqual(["decline", "cancel"]);
});

describe("an answer", () => {
  const fault = (schema: object, answer: Answer, isRequired = false) => {
    const requested_schema = { properties: { a: schema }, required: isRequired ? ["a"] : [] };
    return faultOf(form(elicited("1", { requested_schema })).fields[0] as Field, answer);
  };
  const choices = { items: { anyOf: [{ const: "x" }, { const: "y" }] } };

  it.each<[object, Answer, string]>([
    [{ type: "string", minLength: 2 }, typed("\u{1f600}"), "At least 2 characters."],
    [{ type: "string", maxLength: 1 }, typed("\u{1f600}"), ""],
    [{ type: "string", maxLength: 1 }, typed("ab"), "At most 1 characters."],
    [{ type: "string", format: "email" }, typed(" a@b "), ""],
    [{ type: "string", format: "email" }, typed("a@"), "This is not an e-mail address."],
    [{ type: "string", format: "date" }, typed("?"), "This is not a date."],
    [{ type: "integer" }, typed("1.5"), "This is not a whole number."],
    [{ type: "integer" }, typed("2.0"), ""],
    [{ type: "integer" }, typed("two"), "This is not a whole number."],
    [{ type: "number", maximum: 1 }, typed("1.01"), "At most 1."],
    [{ type: "number", minimum: -1 }, typed("-1.01"), "At least -1."],
    [{ type: "number" }, typed("0x1"), "This is not a number, such as 12.5."],
    [{ type: "number" }, typed("1e999"), "This is not a number, such as 12.5."],
    [{ type: "array", minItems: 2, ...choices }, chosen("x"), "Choose at least 2."],
    [{ type: "array", maxItems: 1, ...choices }, chosen("x", "y"), "Choose at most 1."],
    [{ type: "boolean" }, chosen("no"), ""],
  ])("of %j that is %j is told what is wrong: %j", (schema, answer, said) => {
    expect(fault(schema, answer)).toBe(said);
  });

  it("that is missing is a fault where one is needed, and nowhere else", () => {
    expect(fault({ type: "string" }, NOTHING, true)).toBe("An answer is required.");
    expect(fault({ type: "string" }, typed("  "), true)).toBe("An answer is required.");
    expect(fault({ type: "integer", minimum: 3 }, NOTHING)).toBe("");
    const [choice] = form(asked("1", CHOICE)).fields as [Field];
    expect(faultOf(choice, own(" "))).toBe("An answer is required.");
  });
});

it.each([
  ["email", ["a@b", "a.b@c.de"], ["a", "@b", "a@b@c", "a b@c", "a@.b", "a@b."]],
  [
    "uri",
    ["https://a", "mailto:a", "x:/y", "a+b.c-d:e"],
    ["a", "//a", "http://", "x:?q", "x:#f", "1a:b", "a: b", "http://["],
  ],
  ["date", ["2026-02-28", "2024-02-29"], ["2026-02-29", "2026-2-1", "0000-01-01", "20260101", "2026-01-01 "]],
  [
    "date-time",
    ["2026-01-31T08:30:00Z", "2026-01-31t08:30:00+02:00", "2026-01-31T08:30Z"],
    ["2026-01-31", "2026-01-31T08:30:00", "2026-02-30T08:30:00Z", "2026-01-31T25:00:00Z"],
  ],
] as const)("%s is told from other texts", (format, valid, invalid) => {
  expect(valid.filter((text) => !hasFormat(format, text))).toEqual([]);
  expect(invalid.filter((text) => hasFormat(format, text))).toEqual([]);
});

it("a moment keeps its time on the way through a field", () => {
  const moments = fc.date({ min: new Date("1971-01-01"), max: new Date("2100-01-01"), noInvalidDate: true });
  fc.assert(
    fc.property(moments, (date) => {
      const moment = toMoment(toLocal(date.toISOString()));
      expect(Math.floor(Date.parse(moment) / 1000)).toBe(Math.floor(date.getTime() / 1000));
      expect(hasFormat("date-time", moment)).toBe(true);
    }),
  );
  expect([toLocal(""), toLocal("x"), toMoment(""), toMoment("?")]).toEqual(["", "", "", "?"]);
});

it("the progress of a form names what is missing", () => {
  const found = form(asked("1", CHOICE), asked("2", TEXT), asked("3", YES_NO));
  const [first, second, third] = found.fields;
  expect(progressOf(found, new Map(), all(found))).toMatchObject({
    answered: 0,
    all: 3,
    toMend: [first, third],
    next: first,
  });
  const some = filled(found, chosen("UTC"), NOTHING, chosen("no"));
  expect(progressOf(found, some, all(found))).toMatchObject({ answered: 2, toMend: [], next: second, isEmpty: false });
  expect(progressOf(found, new Map(), new Set(["2"]))).toMatchObject({ answered: 2, toMend: [] });
  const text = form(asked("2", TEXT));
  expect(progressOf(text, new Map(), all(text)).isEmpty).toBe(true);
});
