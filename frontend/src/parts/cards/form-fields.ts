// The fields of a form, one native control for each kind, with its fault below it.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { hintOf } from "../../forms/card-facts.ts";
import { toLocal, toMoment } from "../../forms/moments.ts";
import type { Answer, Field, Form } from "../../forms/form.ts";
import { exact, exactLine } from "../../text/safe.ts";
import { say } from "../../forms/words.ts";

/** More choices than these are a menu. */
const MENU = 12;
/** Titles of choices up to this length stand in two columns. */
const SHORT = 26;
const MAXIMUM_ROWS = 12;

export const FAULT = html`<svg class="st st-fail" viewBox="0 0 14 14" role="img" aria-label=${say("fault")}>
  <rect x="1.6" y="1.6" width="10.8" height="10.8" rx="2.4" fill="none" stroke="currentColor" stroke-width="1.5" />
  <path d="m5 5 4 4M9 5 5 9" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" />
</svg>`;

export interface FieldState {
  answer: Answer;
  /** What is wrong with the answer; empty until the field was left. */
  fault: string;
  /** What happened to the answer. */
  note: string;
  isOff: boolean;
  /** Whether the digits choose its options. */
  hasKeys: boolean;
  set(answer: Answer): void;
}

/** Return all fields in their order; short ones share a row. */
export function fieldRows(form: Form, stateOf: (field: Field) => FieldState) {
  const rows: unknown[] = [];
  for (let at = 0; at < form.fields.length; at += 1) {
    const field = form.fields[at];
    const next = form.fields[at + 1];
    if (!field) continue;
    if (at > 0 && next && sharesRow(field, next)) {
      rows.push(html`<div class="pair">${drawn(field, at, stateOf(field))}${drawn(next, at + 1, stateOf(next))}</div>`);
      at += 1;
    } else rows.push(drawn(field, at, stateOf(field)));
  }
  return rows;
}

/** Return whether two fields are short enough for one row: values of a known form, and a text beside yes or no. */
export function sharesRow(one: Field, other: Field): boolean {
  const isPlain = (field: Field) => field.kind === "text" && !field.format;
  const isShort = (field: Field) => !isPlain(field) && field.kind !== "choice" && field.kind !== "choices";
  const isText = (field: Field) => isPlain(field) && (field.most ?? 0) <= 200;
  return (
    (isShort(one) || isText(one)) &&
    (isShort(other) || isText(other)) &&
    (isShort(one) ? isShort(other) || one.kind === "boolean" : other.kind === "boolean")
  );
}

function drawn(field: Field, at: number, state: FieldState) {
  const id = `field-${at}`;
  // The title of the form is the first question, or stands above the first field.
  const title = exactLine(field.title, 300);
  const hint = hintOf(field);
  // A server's yes or no is seen to be one, where its answers stand beside each other.
  const isKnown = field.kind === "boolean" && field.name !== "answer";
  const head =
    at === 0
      ? html`<span class="vh" dir="auto">${title}</span>`
      : html`<span class="fq-head"
          ><span class="fq-title" dir="auto">${title}</span>
          <span class="fq-hint ${isKnown ? "narrow-hint" : ""}">${hint}</span></span
        >`;
  const about = field.about ? html`<p class="fq-about" id="${id}-about" dir="auto">${exact(field.about)}</p>` : nothing;
  const below = html`${state.fault ? html`<p class="fq-fault" id="${id}-fault">${FAULT}${state.fault}</p>` : nothing}
  ${state.note ? html`<p class="fq-note" id="${id}-note" dir="auto">${state.note}</p>` : nothing}`;
  const described =
    [field.about ? `${id}-about` : "", state.fault ? `${id}-fault` : "", state.note ? `${id}-note` : ""]
      .filter(Boolean)
      .join(" ") || nothing;
  const isList =
    field.kind === "boolean" || field.kind === "choices" || (field.kind === "choice" && field.choices.length <= MENU);
  if (isList)
    return html`<fieldset class="fq" data-field=${field.key} ?disabled=${state.isOff} aria-describedby=${described}>
      <legend class=${at === 0 ? "plain" : ""}>${head}${clearButton(field, state)}</legend>
      ${about}${options(field, id, state)}${below}
    </fieldset>`;
  return html`<div class="fq" data-field=${field.key}>
    <label for=${id} class="fq-label ${at === 0 ? "plain" : ""}">${head}</label
    >${about}${control(field, id, state, described)}${below}
  </div>`;
}

/** A choice that may be empty can be taken back. */
function clearButton(field: Field, state: FieldState) {
  if (field.isRequired || field.kind === "choices" || !state.answer.chosen.length || state.isOff) return nothing;
  return html`<button class="form-clear" @click=${() => state.set({ ...state.answer, chosen: [] })}>
    ${say("clear")}
  </button>`;
}

function options(field: Field, id: string, state: FieldState) {
  const { answer } = state;
  const isSeveral = field.kind === "choices";
  const isTwo =
    field.kind === "boolean" ||
    (isSeveral && field.choices.every((choice) => !choice.about && choice.title.length <= SHORT) && !answer.isOwn);
  const hasKeys = field.kind === "choice";
  const key = (at: number) =>
    hasKeys && at < 9 ? html`<kbd aria-hidden="true" class=${state.hasKeys ? "" : "faint"}>${at + 1}</kbd>` : nothing;
  const rows = field.choices.map((choice, at) => {
    const isOn = answer.chosen.includes(choice.value) && (isSeveral || !answer.isOwn);
    const title = field.kind === "boolean" ? say(choice.value === "yes" ? "yes" : "no") : exactLine(choice.title, 500);
    const take = () => {
      const others = field.choices
        .map((one) => one.value)
        .filter((value) => answer.chosen.includes(value) !== (value === choice.value));
      state.set(isSeveral ? { ...answer, chosen: others } : { ...answer, chosen: [choice.value], isOwn: false });
    };
    return html`<label class="opt ${isOn ? "on" : ""}">
      <input
        type=${isSeveral ? "checkbox" : "radio"}
        class=${isSeveral ? "cb" : "rd"}
        name=${id}
        .checked=${live(isOn)}
        @change=${take}
      />
      <span class="opt-title" dir="auto">${title}</span>${key(at)}
      ${choice.about ? html`<span class="opt-about" dir="auto">${exactLine(choice.about, 500)}</span>` : nothing}
    </label>`;
  });
  return html`<div class="opts ${isTwo ? "two" : ""} ${field.kind === "boolean" ? "yes-no" : ""}">
    ${rows}${field.takesWords ? ownWords(id, state, isSeveral, key(field.choices.length)) : nothing}
  </div>`;
}

function ownWords(id: string, state: FieldState, isSeveral: boolean, key: unknown) {
  const { answer } = state;
  const take = (event: Event) => {
    const isOwn = (event.target as HTMLInputElement).checked;
    state.set({ ...answer, isOwn, chosen: isSeveral || !isOwn ? answer.chosen : [] });
    const row = (event.target as HTMLElement).closest(".opt");
    if (isOwn) requestAnimationFrame(() => row?.querySelector<HTMLElement>(".own")?.focus());
  };
  return html`<label class="opt ${answer.isOwn ? "on" : ""} opt-own">
    <input
      type=${isSeveral ? "checkbox" : "radio"}
      class=${isSeveral ? "cb" : "rd"}
      name=${id}
      aria-label=${say("somethingElse")}
      .checked=${live(answer.isOwn)}
      @change=${take}
    />
    ${
      answer.isOwn
        ? html`<input
            class="own"
            aria-label=${say("ownWords")}
            placeholder=${say("somethingElse")}
            maxlength="20000"
            .value=${live(answer.text)}
            @input=${(event: Event) => state.set({ ...answer, text: (event.target as HTMLInputElement).value })}
          />`
        : html`<span class="opt-title t2">${say("somethingElse")}</span>`
    }${key}
  </label>`;
}

function control(field: Field, id: string, state: FieldState, described: string | typeof nothing) {
  const { answer, isOff, fault } = state;
  const isWrong = fault ? "true" : nothing;
  const write = (text: string) => state.set({ ...answer, text });
  const placeholder = field.placeholder ? exactLine(field.placeholder, 300) : nothing;
  if (field.kind === "choice")
    return html`<select
      class="inp"
      id=${id}
      ?disabled=${isOff}
      aria-invalid=${isWrong}
      aria-describedby=${described}
      @change=${(event: Event) => state.set({ ...answer, chosen: [(event.target as HTMLSelectElement).value].filter(Boolean) })}
    >
      <option value="" ?selected=${!answer.chosen.length}>${say("chooseOne")}</option>
      ${field.choices.map((choice) => html`<option value=${choice.value} ?selected=${answer.chosen[0] === choice.value}>${exactLine(choice.title)}</option>`)}
    </select>`;
  if (field.kind === "text" && !field.format)
    return html`<textarea
      class="inp"
      id=${id}
      rows=${Math.min(MAXIMUM_ROWS, answer.text.split("\n").length)}
      ?disabled=${isOff}
      placeholder=${placeholder}
      aria-invalid=${isWrong}
      aria-describedby=${described}
      aria-required=${field.isRequired}
      .value=${live(answer.text)}
      @input=${(event: Event) => write((event.target as HTMLTextAreaElement).value)}
    ></textarea>`;
  const { type, mode } = typed(field);
  const isMoment = field.format === "date-time";
  return html`<input
    class="inp"
    id=${id}
    type=${type}
    inputmode=${mode}
    autocomplete="off"
    spellcheck="false"
    ?disabled=${isOff}
    placeholder=${placeholder}
    step=${isMoment ? "1" : nothing}
    aria-invalid=${isWrong}
    aria-describedby=${described}
    aria-required=${field.isRequired}
    .value=${live(isMoment ? toLocal(answer.text) : answer.text)}
    @input=${(event: Event) => {
      const input = event.target as HTMLInputElement;
      // A date that is typed in part has no value yet, and is not an empty one.
      const text = input.value || (input.validity.badInput ? "?" : "");
      write(isMoment ? toMoment(text) : text);
    }}
  />`;
}

function typed(field: Field): { type: string; mode: string } {
  switch (field.format) {
    case "date":
      return { type: "date", mode: "text" };
    case "date-time":
      return { type: "datetime-local", mode: "text" };
    case "email":
      return { type: "text", mode: "email" };
    case "uri":
      return { type: "text", mode: "url" };
    case "":
      return { type: "text", mode: field.kind === "integer" ? "numeric" : "decimal" };
  }
}
