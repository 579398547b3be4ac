import { describe, expect, it } from "vitest";
import { messageOf, hintOf } from "../../src/forms/card-facts.ts";
import { formOf, groupsOf, merged } from "../../src/forms/form.ts";
import { summaryOf, titleOf } from "../../src/forms/form-facts.ts";
import type { ConfirmationRequest, ToolCall } from "../../src/server/protocol.ts";
import { asked, CHOICE, elicited, SEVERAL, TEXT, YES_NO } from "../support/forms.ts";

const form = (...calls: ToolCall[]) => {
  const found = formOf(calls);
  if (!found) throw new Error("expected a form");
  return found;
};

describe("the questions of an agent", () => {
  it("are one form with a field each", () => {
    const found = form(asked("1", CHOICE), asked("2", SEVERAL), asked("3", TEXT), asked("4", YES_NO));
    expect(found.fields.map((field) => [field.kind, field.isRequired, field.takesWords])).toEqual([
      ["choice", true, true],
      ["choices", false, true],
      ["text", false, false],
      ["boolean", true, false],
    ]);
    expect(titleOf(found)).toBe("Which zone?");
    expect(summaryOf(found)).toBe("and 3 more \u00b7 2 choices, 1 text, 1 yes or no");
    expect(found.fields.map(hintOf)).toEqual(["one answer", "several", "may be empty", "yes or no"]);
  });

  it.each([
    [CHOICE, "1 choice of 2"],
    [SEVERAL, "several of 2"],
    [TEXT, "1 text"],
    [YES_NO, "1 yes or no"],
  ])("alone are told by their kind", (question, summary) => {
    expect(summaryOf(form(asked("1", question)))).toBe(summary);
  });

  it("are read from the arguments themselves, too", () => {
    const call = asked("1", CHOICE);
    expect(form({ ...call, input_parameters: CHOICE }).fields[0]?.choices).toHaveLength(2);
  });

  it.each<[string, Partial<ToolCall>]>([
    ["without arguments", { input_parameters: {} }],
    ["with several questions in one call", { input_parameters: { questions: [CHOICE, TEXT] } }],
    ["of a kind that is not known", { input_parameters: { question: "a", type: "date" } }],
    ["without a document to fill in", { input_parameters: { questions: [TEXT] } }],
    ["whose options are others", { input_parameters: { questions: [{ ...CHOICE, options: [{ label: "x" }] }] } }],
  ])("%s are shown otherwise", (_, change) => {
    const request: ConfirmationRequest = { options: [{ id: "yes", name: "Go on" }] };
    expect(formOf([{ ...asked("1", CHOICE), confirmation_request: request, ...change }])).toBeUndefined();
  });

  it("that are cut in the title are shown whole below it", () => {
    const long = form(asked("1", { ...TEXT, question: `${"long ".repeat(60)}?` }));
    expect(titleOf(long)).toHaveLength(200);
    expect(messageOf(long)).toContain("long ?");
    expect(messageOf(form(asked("1", { ...TEXT, question: "One?\nMore." })))).toBe("More.");
    expect(messageOf(form(asked("1", TEXT)))).toBe("");
  });

  it("show what hides in them", () => {
    expect(titleOf(form(asked("1", { ...TEXT, question: "p\u0430y\u202e?" })))).toBe("p\\u{430}y\\u{202e}?");
  });
});

describe("what a server asks", () => {
  const schema = {
    type: "object",
    required: ["count"],
    properties: {
      count: { type: "integer", title: "How many?", minimum: 1, maximum: 9, default: 2 },
      share: { type: "number" },
      mail: { type: "string", format: "email", description: "Yours" },
      plain: { type: "string", format: "hostname", maxLength: 5, default: "a" },
      sure: { type: "boolean", default: false },
      one: { type: "string", oneOf: [{ const: "a", title: "A", description: "first" }, { const: "b" }], default: "b" },
      more: { type: "array", minItems: 1, items: { anyOf: [{ const: "a" }, { const: "b" }] }, default: ["b"] },
    },
  };

  it("has a field for each property, with what is proposed", () => {
    const found = form(elicited("1", { requested_schema: schema, host: "tickets.example.org" }));
    expect(
      found.fields.map(({ kind, format, isRequired, least, most }) => [kind, format, isRequired, least, most]),
    ).toEqual([
      ["integer", "", true, 1, 9],
      ["number", "", false, undefined, undefined],
      ["text", "email", false, undefined, undefined],
      ["text", "", false, undefined, 5],
      ["boolean", "", false, undefined, undefined],
      ["choice", "", false, undefined, undefined],
      ["choices", "", false, 1, undefined],
    ]);
    expect(found.fields.map((field) => [field.preset.text, ...field.preset.chosen])).toEqual([
      ["2"],
      [""],
      [""],
      ["a"],
      ["", "no"],
      ["", "b"],
      ["", "b"],
    ]);
    expect(found.fields[5]?.choices[0]).toEqual({ value: "a", title: "A", about: "first" });
    expect(summaryOf(found)).toBe("7 fields \u00b7 goes to tickets.example.org");
    expect(found.fields.map(hintOf).slice(0, 3)).toEqual([
      "a whole number",
      "a number \u00b7 may be empty",
      "an e-mail address \u00b7 may be empty",
    ]);
  });

  it("is shown otherwise if its schema did not come along, or has what is not known", () => {
    expect(formOf([elicited("1", { fields: ["a"] })])).toBeUndefined();
    const nested = { properties: { a: { type: "object" } } };
    expect(formOf([elicited("1", { requested_schema: nested })])).toBeUndefined();
  });

  it("may be a page to open, or pages after which a call is made again", () => {
    const url = "https://login.example.org/a";
    const page = form(elicited("1", { mode: "url", url, host: "login.example.org", message: "" }));
    expect([page.is, titleOf(page), summaryOf(page)]).toEqual([
      "page",
      "Open login.example.org",
      "opens login.example.org",
    ]);
    const pages = form(elicited("1", { mode: "url", urls: [url], asked_in: "release" }));
    expect([pages.is, titleOf(pages), summaryOf(pages)]).toEqual([
      "pages",
      "Are you done at login.example.org?",
      "release goes on after it",
    ]);
  });
});

describe("the calls of a form", () => {
  const [one, two] = [asked("1", CHOICE), asked("1_2", TEXT)];
  const relayed = asked("9?1", CHOICE);
  const other = elicited("5?1", {});

  it("are the open questions of one asker; any other call is alone", () => {
    expect(groupsOf([one, other, relayed, two])).toEqual([[one, two], [other], [relayed]]);
  });

  it("stay in their places while some are answered and others come", () => {
    const again = { ...two };
    expect(merged([one, two], [again, relayed])).toEqual([one, again, relayed]);
    expect(merged([one, two], [again])[1]).toBe(again);
  });

  it("are read once", () => {
    expect(formOf([one, two])).toBe(formOf([one, two]));
  });
});
