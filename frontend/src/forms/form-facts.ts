// What the list and the card say of a form, in words of the page; the asker's own words are shown as they are.

import { exactLine, visibleLine } from "../text/safe.ts";
import type { TaskRow } from "../server/protocol.ts";
import { COMMA, type Word, t } from "../words.ts";
import type { Field, Form } from "./form.ts";

/** Maximum number of characters of a title; a longer question is shown whole below it. */
const TITLE = 200;

/** Return what is asked, in one line. */
export function titleOf(form: Form): string {
  if (form.is === "pages") return t("doneThere", exactLine(hostsOf(form)));
  const line = exactLine(form.message.trimStart().split("\n", 1)[0] ?? "", TITLE);
  return line || (form.is === "page" ? t("openHost", exactLine(form.host)) : exactLine(form.server));
}

function hostsOf(form: Form): string {
  return [...new Set(form.urls.map((url) => (URL.canParse(url) ? new URL(url).host : url)))].join(", ");
}

/** Return the line below the title in the list. */
export function summaryOf(form: Form): string {
  if (form.is === "page") return t("opensHost", exactLine(form.host || hostsOf(form)));
  if (form.is === "pages") return t("goesOnAfter", exactLine(form.askedIn || form.server));
  if (form.is === "fields")
    return [
      form.fields.length ? plural(form.fields.length, "oneField", "countFields") : "",
      t("goesToShort", exactLine(form.host || form.server || t("anAgent"))),
    ]
      .filter(Boolean)
      .join(" \u00b7 ");
  const [first, ...others] = form.fields;
  if (!first) return "";
  return others.length ? `${t("andMore", others.length)} \u00b7 ${kindsOf(form.fields)}` : oneOf(first);
}

function oneOf(field: Field): string {
  if (field.kind === "choice") return t("oneChoiceOf", field.choices.length);
  if (field.kind === "choices") return t("severalOf", field.choices.length);
  return kindsOf([field]);
}

function kindsOf(fields: readonly Field[]): string {
  const count = (test: (field: Field) => boolean) => fields.filter(test).length;
  const choices = count((field) => field.kind === "choice" || field.kind === "choices");
  const yesNo = count((field) => field.kind === "boolean");
  const texts = fields.length - choices - yesNo;
  return [
    choices ? plural(choices, "oneChoice", "countChoices") : "",
    texts ? plural(texts, "oneText", "countTexts") : "",
    yesNo ? t("countYesNo", yesNo) : "",
  ]
    .filter(Boolean)
    .join(COMMA);
}

function plural(count: number, one: Word, more: Word): string {
  return t(count === 1 ? one : more, count);
}

/** Return the name of who asks: an MCP server, or the agent. */
export function askerOf(form: Form, agent: string): string {
  return visibleLine(form.server || agent, 60);
}

/** Return the name of a model without its provider. */
export function modelName(task: TaskRow): string {
  return visibleLine(task.model.slice(task.model.indexOf(":") + 1), 60);
}
