// What the card of a form says of it, in words of the page.

import { exact } from "../text/safe.ts";
import type { Field, Form } from "./form.ts";
import { titleOf } from "./form-facts.ts";
import { t } from "../words.ts";
import { type FormWord, say } from "./words.ts";

const NUMBERS: FormWord[] = ["theseTwo", "theseThree", "theseFour"];

/** Return what the title does not say of the message: its further lines, or all of it if the title is cut. */
export function messageOf(form: Form): string {
  const message = exact(form.message.trim());
  const [line = "", ...rest] = message.split("\n");
  if (form.is === "pages") return "";
  return line.trim() === titleOf(form) ? rest.join("\n").trim() : message;
}

/** Return what kind of answer a field takes. */
export function hintOf(field: Field): string {
  const kinds: Record<Field["kind"], FormWord> = {
    text: "aText",
    number: "aNumber",
    integer: "anInteger",
    boolean: "yesOrNo",
    choice: "oneAnswer",
    choices: "several",
  };
  const formats: Record<Exclude<Field["format"], "">, FormWord> = {
    email: "anEmail",
    uri: "aUri",
    date: "aDate",
    "date-time": "aMoment",
  };
  const isPlain = field.kind === "text" && !field.format;
  const mayBeEmpty = !field.isRequired && field.kind !== "choices" ? say("mayBeEmpty") : "";
  const kind = field.format ? say(formats[field.format]) : isPlain && mayBeEmpty ? "" : say(kinds[field.kind]);
  return [kind, mayBeEmpty].filter(Boolean).join(" \u00b7 ");
}

/** Return the number of the questions that an answer covers, in words. */
export function coversOf(form: Form): string {
  if (form.is !== "questions") return say(form.is === "fields" ? "thisOneQuestion" : "thisPageOnce");
  const count = form.fields.length;
  const word = NUMBERS[count - 2];
  if (count === 1) return t("thisQuestion");
  return word ? say(word) : say("theseQuestions", count);
}
