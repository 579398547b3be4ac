// A question with fields, read from the structure of its calls: an agent's questions, a server's form, or a page to open.
// Never from the document of the call, which is for clients that show files alone.

import type { ConfirmationOption, ToolCall } from "../server/protocol.ts";

export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "choices";
export type Format = "" | "email" | "uri" | "date" | "date-time";

export interface Choice {
  value: string;
  title: string;
  about: string;
}

export interface Field {
  /** Name that no other field of the form has. */
  key: string;
  callId: string;
  /** Name of the value for the asker. */
  name: string;
  kind: FieldKind;
  title: string;
  about: string;
  /** Hint at what to type. */
  placeholder: string;
  isRequired: boolean;
  choices: readonly Choice[];
  /** Bounds of a number, of a text's characters or of the number of choices. */
  least: number | undefined;
  most: number | undefined;
  format: Format;
  /** What the asker proposes, as an answer. */
  preset: Answer;
  /** Whether the user may answer a choice in words. */
  takesWords: boolean;
}

/** What the user has chosen and typed in a field. With `isOwn` the text is an answer beside or instead of the choices. */
export interface Answer {
  chosen: readonly string[];
  text: string;
  isOwn: boolean;
}

export type Answers = ReadonlyMap<string, Answer>;

export interface Form {
  /** Questions of an agent; fields of a server or a hosted agent; a page to open; pages after which a call is made again. */
  is: "questions" | "fields" | "page" | "pages";
  calls: readonly ToolCall[];
  fields: readonly Field[];
  /** What is asked, as the asker says it. */
  message: string;
  /** Name of the MCP server that asks; empty for an agent. */
  server: string;
  /** Host that gets the answer, or whose page is opened; empty for a program. */
  host: string;
  urls: readonly string[];
  opensBrowser: boolean;
  /** The tool during whose call it is asked. */
  askedIn: string;
  /** Why the last answer was not accepted. */
  problem: string;
}

export const NOTHING: Answer = { chosen: [], text: "", isOwn: false };
const YES_NO = ["yes", "no"] as const;

type Json = Record<string, unknown>;
const object = (value: unknown): Json =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Return the name of what calls of a task are asked together with: those of one asker are one form. */
export function groupOf(call: ToolCall): string {
  const id = call.tool_call_id;
  return call.tool_name === "ask_user" ? `ask_user ${id.slice(0, Math.max(0, id.lastIndexOf("?")))}` : id;
}

/** Return the open calls of a task as they are asked: the questions of one asker together, any other call alone. */
export function groupsOf(calls: readonly ToolCall[]): ToolCall[][] {
  const groups = new Map<string, ToolCall[]>();
  for (const call of calls) {
    const name = groupOf(call);
    groups.set(name, [...(groups.get(name) ?? []), call]);
  }
  return [...groups.values()];
}

/** Return the calls of a group that was shown before, with what it has got since; an answered call stays in its place. */
export function merged(shown: readonly ToolCall[], open: readonly ToolCall[]): ToolCall[] {
  const known = new Map(open.map((call) => [call.tool_call_id, call]));
  const before = shown.map((call) => known.get(call.tool_call_id) ?? call);
  const ids = new Set(before.map((call) => call.tool_call_id));
  return [...before, ...open.filter((call) => !ids.has(call.tool_call_id))];
}

const KNOWN = new WeakMap<ToolCall, { calls: readonly ToolCall[]; form: Form | undefined }>();

/** Return the form of calls that are asked together; undefined if they are to be shown otherwise. */
export function formOf(calls: readonly ToolCall[]): Form | undefined {
  const [first] = calls;
  if (!first) return undefined;
  const known = KNOWN.get(first);
  if (known && known.calls.length === calls.length && known.calls.every((call, at) => call === calls[at]))
    return known.form;
  const form = read(calls, first);
  KNOWN.set(first, { calls, form });
  return form;
}

function read(calls: readonly ToolCall[], first: ToolCall): Form | undefined {
  if (first.tool_name === "ask_user") {
    const fields = calls.map(askedField);
    const known = fields.filter((field) => field !== undefined);
    return known.length === calls.length && known[0]
      ? { ...empty(calls), is: "questions", fields: known, message: known[0].title }
      : undefined;
  }
  return first.tool_name === "elicitation" ? elicited(first) : undefined;
}

function empty(calls: readonly ToolCall[]): Omit<Form, "is"> {
  const place = { server: "", host: "", urls: [], opensBrowser: false, askedIn: "", problem: "" };
  return { calls, fields: [], message: "", ...place };
}

// --- the questions of an agent ---------------------------------------------------------------------------------------

function askedField(call: ToolCall): Field | undefined {
  const about = object(call.input_parameters);
  const questions = list(about.questions);
  if (!("question" in about) && questions.length !== 1) return undefined;
  const asked = "question" in about ? about : object(questions[0]);
  const title = text(asked.question);
  const type = text(asked.type) || "choice";
  const request = call.confirmation_request;
  if (!title || !/^(choice|text|yesno)$/.test(type) || !request) return undefined;
  const isMultiple = type === "choice" && asked.multiSelect === true;
  const kind = type === "text" ? "text" : type === "yesno" ? "boolean" : isMultiple ? "choices" : "choice";
  const choices =
    kind === "boolean"
      ? YES_NO.map((value) => ({ value, title: value, about: "" }))
      : list(asked.options).map((option) => {
          const label = text(object(option).label);
          return { value: label, title: label, about: text(object(option).description) };
        });
  const labels = kind === "boolean" ? ["Yes", "No"] : choices.map((choice) => choice.value);
  const isDocument = kind === "text" || kind === "choices";
  // Another agent may ask in its own way: then its options are the answers.
  if (
    isDocument
      ? !request.file_edit_details
      : !labels.length || !labels.every((_, at) => optionOf(request.options, labels, at))
  )
    return undefined;
  return {
    ...fieldOf(call, "answer", kind),
    title,
    placeholder: text(asked.placeholder),
    isRequired: !isDocument,
    choices: kind === "text" ? [] : choices,
    takesWords: kind === "choices" || (kind === "choice" && request.words_option !== undefined),
  };
}

/** Return the option of a call that stands for the choice at a place. */
export function optionOf(options: readonly ConfirmationOption[], labels: readonly string[], at: number) {
  return (
    options.find((option) => option.id === `choice_${at + 1}`) ?? options.find((option) => option.name === labels[at])
  );
}

function fieldOf(call: ToolCall, name: string, kind: FieldKind): Field {
  const rest = { title: name, about: "", placeholder: "", isRequired: false, choices: [], format: "" as Format };
  const key = `${call.tool_call_id}/${name}`;
  const bounds = { least: undefined, most: undefined };
  return { key, callId: call.tool_call_id, name, kind, ...rest, ...bounds, preset: NOTHING, takesWords: false };
}

// --- what a server asks ----------------------------------------------------------------------------------------------

function elicited(call: ToolCall): Form | undefined {
  const about = object(call.input_parameters);
  const request = call.confirmation_request;
  if (!request) return undefined;
  const urls = text(about.url) ? [text(about.url)] : list(about.urls).map(text).filter(Boolean);
  const form = {
    ...empty([call]),
    message: text(about.message),
    server: text(about.server),
    host: text(about.host),
    askedIn: text(about.asked_in),
    problem: text(about.problem),
    urls,
    opensBrowser: about.opens_browser === true,
  };
  if (text(about.mode) === "url") return urls.length ? { ...form, is: text(about.url) ? "page" : "pages" } : undefined;
  const schema = object(about.requested_schema);
  const properties = Object.entries(object(schema.properties));
  if (!form.message || (!properties.length && (list(about.fields).length || !("requested_schema" in about))))
    return undefined;
  const required = new Set(list(schema.required));
  const isDirect = request.file_edit_details === undefined;
  const fields = properties.map(([name, value]) =>
    schemaField(call, name, object(value), isDirect || required.has(name)),
  );
  const known = fields.filter((field) => field !== undefined);
  return known.length === fields.length ? { ...form, is: "fields", fields: known } : undefined;
}

function schemaField(call: ToolCall, name: string, schema: Json, isRequired: boolean): Field | undefined {
  const kind = kindOf(schema);
  if (!kind) return undefined;
  const entries = kind === "choices" ? list(object(schema.items).anyOf) : kind === "choice" ? list(schema.oneOf) : [];
  const choices =
    kind === "boolean"
      ? YES_NO.map((value) => ({ value, title: value, about: "" }))
      : entries.map(object).map((entry) => {
          const value = text(entry.const);
          return { value, title: text(entry.title) || value, about: text(entry.description) };
        });
  const [least, most] =
    kind === "choices"
      ? [schema.minItems, schema.maxItems]
      : kind === "text"
        ? [schema.minLength, schema.maxLength]
        : [schema.minimum, schema.maximum];
  const format = text(schema.format);
  return {
    ...fieldOf(call, name, kind),
    title: text(schema.title) || name,
    about: text(schema.description),
    isRequired,
    choices,
    least: number(least),
    most: number(most),
    format: kind === "text" && /^(email|uri|date|date-time)$/.test(format) ? (format as Format) : "",
    preset: presetOf(kind, schema.default),
  };
}

function kindOf(schema: Json): FieldKind | undefined {
  const type = text(schema.type);
  if (type === "string") return list(schema.oneOf).length ? "choice" : "text";
  if (type === "array") return list(object(schema.items).anyOf).length ? "choices" : undefined;
  return type === "number" || type === "integer" || type === "boolean" ? type : undefined;
}

function presetOf(kind: FieldKind, value: unknown): Answer {
  if (kind === "choices") return { ...NOTHING, chosen: list(value).map(text).filter(Boolean) };
  if (kind === "boolean") return typeof value === "boolean" ? { ...NOTHING, chosen: [value ? "yes" : "no"] } : NOTHING;
  if (kind === "choice") return text(value) ? { ...NOTHING, chosen: [text(value)] } : NOTHING;
  return typeof value === "number" || typeof value === "string" ? { ...NOTHING, text: String(value) } : NOTHING;
}
