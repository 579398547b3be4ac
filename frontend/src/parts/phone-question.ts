// The question of a session on a phone: a card at its place, which opens the page of the question.

import { html } from "lit";
import { formOf } from "../forms/form.ts";
import { summaryOf, titleOf } from "../forms/form-facts.ts";
import { icon, stateMark } from "../icons.ts";
import { PhoneWatch } from "../phone/phone.ts";
import { phoneWord } from "../phone/words.ts";
import { PAGE } from "../place.ts";
import { factsOf } from "../question.ts";
import { questionPath } from "../routes.ts";
import type { Asked } from "./asked-card.ts";
import type { PageElement } from "./base.ts";
import { countsOf } from "./counts.ts";

const WATCHES = new WeakMap<PageElement, PhoneWatch>();

/** Return whether an element is drawn on a phone; it is drawn anew when that changes. */
export function isOnPhone(host: PageElement): boolean {
  let watch = WATCHES.get(host);
  if (!watch) WATCHES.set(host, (watch = new PhoneWatch(host)));
  return watch.isPhone;
}

/** Return the card that opens the page of a question. */
export function askedLink({ calls, open, task, taskId }: Asked) {
  // The inbox knows a question by the first of its calls that waits.
  const call = calls.find((one) => open.has(one.tool_call_id)) ?? calls[0];
  const form = formOf(calls);
  const facts = call && factsOf(call, task?.workspace ?? "");
  const diff = call?.confirmation_request?.file_edit_details;
  const title = form ? titleOf(form) : `${facts?.verb ?? ""} ${facts?.object ?? ""}`.trim();
  return html`<a class="asked-link" href=${PAGE + questionPath(`${taskId}/${call?.tool_call_id ?? ""}`)}>
    <span class="xs md row">${stateMark("input-required")}${phoneWord("waitsForAnswer")}</span>
    <b dir="auto">${title}</b>
    <span class="sm t2 cut" dir="auto"
      >${form ? summaryOf(form) : diff ? countsOf(diff) : (facts?.wants ?? facts?.touches)}</span
    >
    <span class="go sm md row">${phoneWord("openQuestion")}${icon("fold")}</span>
  </a>`;
}
