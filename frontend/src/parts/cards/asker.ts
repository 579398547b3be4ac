// Who asks, and where: in the list of the inbox, and above its question.

import { html, nothing } from "lit";
import { type Form, formOf } from "../../forms/form.ts";
import { askerOf, summaryOf, titleOf } from "../../forms/form-facts.ts";
import { MARK, icon, stateMark } from "../../frame/icons.ts";
import { factsOf, fileName } from "../../questions/question.ts";
import { serverOf } from "../../questions/asker-names.ts";
import { riskPills } from "../../questions/risks.ts";
import { ask } from "../../questions/words.ts";
import { exactLine, visibleLine } from "../../text/safe.ts";
import { type SessionList, sessionPath } from "../../server/sessions.ts";
import type { Question } from "../../server/store.ts";
import { subagentOf } from "../../task/subagents.ts";
import { age, t } from "../../words.ts";
import { countsOf } from "../files/counts.ts";
import type { SheetLines } from "../phone-head.ts";

export function badge(server: string, agent: string) {
  const sign = server ? icon("plug") : agent === "Isthmus" ? MARK : [...agent][0]?.toUpperCase();
  return html`<span class="who" aria-hidden="true">${sign}</span>`;
}

/** Return the name of who asks: of an MCP server, of a subagent, or of the agent. */
function nameOf({ call }: Question, agent: string): string {
  const subagent = subagentOf(call);
  return serverOf(call) || (subagent ? t("subagentBadge", subagent) : agent);
}

const titleIn = (sessions: SessionList, { task }: Question): string => visibleLine(sessions.titleOf(task), 80);

/** Return the first line of a question in the list. */
export function fromLine(question: Question, sessions: SessionList, agent: string, time: string) {
  const server = serverOf(question.call);
  const session = titleIn(sessions, question);
  const place = server ? [t("mcpServer"), session].filter(Boolean).join(" \u00b7 ") : session;
  return nameLine(server, nameOf(question, agent), place, time);
}

/** Return who asks, where and when; `server` is the name of an MCP server, if one asks. */
export function nameLine(server: string, name: string, place: string, time: string) {
  return html`<span class="from"
    >${badge(server, name)}<span class="cut"><b dir="auto">${name}</b> <span class="t3" dir="auto">${place}</span></span
    ><time>${time}</time></span
  >`;
}

/** Return what a question is about, in two lines. */
export function aboutLines(question: Question): { what: unknown; peek: unknown } {
  const form = formOf(question.calls);
  if (form) return { what: titleOf(form), peek: summaryOf(form) };
  const { call, task } = question;
  const facts = factsOf(call, task.workspace);
  const { file_edit_details: diff, execute_details: run } = call.confirmation_request ?? {};
  const pills = riskPills(call, true);
  const title = run ? t("runCommand") : [facts.verb, facts.object].filter(Boolean).join(" ");
  const what = html`<span class="cut" dir="auto">${title}</span> ${pills}`;
  if (run) return { what, peek: html`<code class="cut">${exactLine(run.command, 200)}</code>` };
  const folder = exactLine(task.workspace.replace(/\/+$/, "").split("/").at(-1) ?? "", 60);
  const about = diff ? (folder ? ask("oneFileOf", folder) : t("oneFile")) : facts.costs || facts.touches;
  return {
    what,
    peek: html`${diff ? html`${countsOf(diff)} ·` : nothing} <span class="cut" dir="auto">${about}</span>`,
  };
}

/** Return who asks and where, for the head above a question. */
export function askerHead(question: Question, sessions: SessionList, agent: string, now: number, isOpen: boolean) {
  const server = serverOf(question.call);
  const waits = age(question.task.changedAt, now);
  const session = titleIn(sessions, question);
  const { contextId, id } = question.task;
  return html`${badge(server, agent)}
    <span class="asker sm md cut" dir="auto">${nameOf(question, agent)}</span>
    <span class="sm t3 wide-only">${t(server ? "anMcpServerIn" : "inSession")}</span>
    <a class="sm cut target" href=${sessionPath(contextId, id)} dir="auto">${session || t("sessions")}</a>
    ${isOpen ? waitsPill(waits) : nothing}`;
}

/** Return which agent of a companion asks, for the head above its question. */
export function companionHead(agent: string, place: string, waits: string, isOpen: boolean) {
  return html`${badge("", agent)}
    <span class="asker sm md cut" dir="auto">${agent}</span>
    ${place ? html`<span class="sm t3 wide-only">${t("inSession")}</span><span class="sm cut" dir="auto">${place}</span>` : nothing}
    ${isOpen ? waitsPill(waits) : nothing}`;
}

/** Return how long a question waits; `waits` is its age in words. */
function waitsPill(waits: string) {
  return html`<span class="pill acc"
    >${stateMark("input-required")}${waits === t("now") ? t("waitsSince") : t("waitsFor", waits)}</span
  >`;
}

/** Return what is asked, who asks and where, for the head of a question on a phone. */
export function sheetLines(question: Question, sessions: SessionList, agent: string, now: number): SheetLines {
  const form = formOf(question.calls);
  const server = serverOf(question.call);
  const who = server ? t("mcpServer") : nameOf(question, agent);
  return {
    title: form ? formTitle(form, agent) : callTitle(question),
    place: [who, titleIn(sessions, question)].filter(Boolean).join(" \u00b7 "),
    age: age(question.task.changedAt, now),
  };
}

function formTitle(form: Form, agent: string): string {
  const count = form.fields.length;
  if (form.server || form.is !== "questions") return t("questionOfServer", askerOf(form, agent));
  return count > 1 ? t("countQuestions", count) : t("questionOfAgent");
}

/** Return the verb and the object of a call; of a file its name, since the path stands above the diff. */
function callTitle({ call, task }: Question): string {
  const { verb, object } = factsOf(call, task.workspace);
  return `${verb} ${call.confirmation_request?.file_edit_details ? fileName(object) : object}`.trim();
}
