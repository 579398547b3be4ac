// Whether an answer fits its field, by the rules of src/isthmus/forms/form.py, which decides on the server. Pure.

import { LANGUAGE } from "../language.ts";
import type { Answer, Answers, Field, Form } from "./form.ts";
import { answerOf, isAnswered, wordsOf } from "./replies.ts";
import { type FormWord, say } from "./words.ts";

const NUMBER = /^[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?$/;
const EMAIL = /^[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*$/u;
const URI = /^[a-z][a-z0-9+.-]*:(?:\/\/([^/?#]*))?([^?#]*)/i;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const MOMENT = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:\d{2})$/;

const FAULTS: Record<Exclude<Field["format"], "">, FormWord> = {
  email: "notEmail",
  uri: "notUri",
  date: "notDate",
  "date-time": "notMoment",
};

/** Return why an answer cannot be sent, for the user; empty if it can. */
export function faultOf(field: Field, answer: Answer): string {
  if (answer.isOwn && field.kind === "choice" && !wordsOf(field, answer)) return say("valueMissing");
  if (!isAnswered(field, answer)) return field.isRequired ? say("valueMissing") : "";
  switch (field.kind) {
    case "number":
    case "integer":
      return numberFault(field, wordsOf(field, answer));
    case "choices":
      return countFault(field, answer.chosen.length, "tooFewChosen", "tooManyChosen");
    case "text":
      return textFault(field, wordsOf(field, answer));
    default:
      return "";
  }
}

function numberFault(field: Field, text: string): string {
  const value = Number(text);
  if (!NUMBER.test(text) || !Number.isFinite(value)) return say(field.kind === "integer" ? "notInteger" : "notNumber");
  if (field.kind === "integer" && !Number.isInteger(value)) return say("notInteger");
  return countFault(field, value, "tooSmall", "tooGreat");
}

function textFault(field: Field, text: string): string {
  const fault = countFault(field, [...text].length, "tooShort", "tooLong");
  return fault || (field.format && !hasFormat(field.format, text) ? say(FAULTS[field.format]) : "");
}

function countFault(field: Field, count: number, few: FormWord, many: FormWord): string {
  if (field.least !== undefined && count < field.least) return say(few, shown(field.least));
  return field.most !== undefined && count > field.most ? say(many, shown(field.most)) : "";
}

export function hasFormat(format: Field["format"], text: string): boolean {
  switch (format) {
    case "email":
      return EMAIL.test(text);
    case "uri": {
      const parts = URI.exec(text);
      const [, host = "", path = ""] = parts ?? [];
      return (
        parts !== null && !/\s/.test(text) && host.includes("[") === host.includes("]") && (host + path).length > 0
      );
    }
    case "date":
      return DATE.test(text) && isDay(text);
    case "date-time":
      return MOMENT.test(text) && isDay(text.slice(0, 10)) && !Number.isNaN(Date.parse(text.toUpperCase()));
    case "":
      return true;
  }
}

/** Return whether a day is in the calendar. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day) && !day.startsWith("0000");
}

/** Return a number as the reader of the page writes it. */
export function shown(count: number): string {
  return count.toLocaleString(LANGUAGE, { maximumFractionDigits: 20 });
}

/** The fields of a form by what is missing before it can be sent. */
export interface Progress {
  answered: number;
  all: number;
  /** Fields whose answer is missing or wrong, in their order. */
  toMend: Field[];
  /** The first field without an answer that needs one, else the first without an answer. */
  next: Field | undefined;
  /** Whether everything may be empty and is. */
  isEmpty: boolean;
}

/** Return what is done and what is missing, of the calls that are open. */
export function progressOf(form: Form, answers: Answers, open: ReadonlySet<string>): Progress {
  const isDone = (field: Field) => !open.has(field.callId) || isAnswered(field, answerOf(field, answers));
  const toMend = form.fields.filter(
    (field) => open.has(field.callId) && faultOf(field, answerOf(field, answers)) !== "",
  );
  const undone = form.fields.filter((field) => !isDone(field));
  return {
    answered: form.fields.length - undone.length,
    all: form.fields.length,
    toMend,
    next: undone[0] ?? toMend[0],
    isEmpty: form.fields.length > 0 && undone.length === form.fields.length && !toMend.length,
  };
}
