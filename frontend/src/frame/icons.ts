// The mark and the icons, 16 by 16.

import { svg, html, type TemplateResult } from "lit";
import type { TaskState } from "../server/protocol.ts";
import { INVOKE_AGENT } from "../task/subagents.ts";
import { t } from "../words.ts";

const PATHS = {
  inbox: svg`<path d="M2 9.5 3.8 3.6A1 1 0 0 1 4.8 3h6.4a1 1 0 0 1 1 .6L14 9.5V12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1z"/><path d="M2 9.5h3.5l1 1.5h3l1-1.5H14"/>`,
  history: svg`<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3l2 1.5"/>`,
  device: svg`<rect x="4.5" y="1.8" width="7" height="12.4" rx="1.5"/><path d="M7 12h2"/>`,
  file: svg`<path d="M4 2h5l3 3v9H4z"/><path d="M9 2v3h3"/>`,
  edit: svg`<path d="m3 13 .7-3L10.5 3.2l2.3 2.3L6 12.3z"/>`,
  shell: svg`<path d="m3 5 3 3-3 3M8 11.5h5"/>`,
  search: svg`<circle cx="7" cy="7" r="4"/><path d="m10 10 3.5 3.5"/>`,
  plug: svg`<path d="M6 2v3M10 2v3M4 5h8v2.5a4 4 0 0 1-8 0zM8 11.5V14"/>`,
  settings: svg`<circle cx="8" cy="8" r="2"/><path d="M8 2v2M8 12v2M2 8h2M12 8h2M3.8 3.8l1.4 1.4M10.8 10.8l1.4 1.4M12.2 3.8l-1.4 1.4M5.2 10.8l-1.4 1.4"/>`,
  stop: svg`<rect x="4" y="4" width="8" height="8" rx="1"/>`,
  fold: svg`<path d="m6 4 4 4-4 4"/>`,
  back: svg`<path d="M10 3 5 8l5 5"/>`,
  sides: svg`<rect x="2" y="3" width="12" height="10" rx="1"/><path d="M8 3v10"/>`,
  attach: svg`<path d="m12.5 7-4.8 4.8a2.6 2.6 0 0 1-3.7-3.7l5-5a1.7 1.7 0 0 1 2.4 2.4L6.6 10.3"/>`,
  down: svg`<path d="m4.5 6.5 3.5 3.5 3.5-3.5"/>`,
  undo: svg`<path d="M5.5 3 2.5 6l3 3"/><path d="M2.5 6h7a4 4 0 0 1 0 8H6"/>`,
  branch: svg`<circle cx="4.5" cy="3.5" r="1.5"/><circle cx="4.5" cy="12.5" r="1.5"/><circle cx="11.5" cy="5" r="1.5"/><path d="M4.5 5v6M11.5 6.5c0 3-7 1.5-7 4.5"/>`,
  comment: svg`<path d="M2.5 3h11v8H7.5L5 13.5V11H2.5z"/>`,
  plus: svg`<path d="M8 3v10M3 8h10"/>`,
  check: svg`<path d="m3.5 8.5 3 3 6-7"/>`,
  up: svg`<path d="M8 13V3.5M4 7.5l4-4 4 4"/>`,
  next: svg`<path d="M8 3v9.5M4 8.5l4 4 4-4"/>`,
  warn: svg`<path d="M8 2.5 14.5 13.5h-13z"/><path d="M8 6.5v3.5M8 12v.1"/>`,
  archive: svg`<path d="M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3"/>`,
  close: svg`<path d="m4 4 8 8M12 4l-8 8"/>`,
  list: svg`<path d="m2.5 4 1 1 1.7-2M2.5 11l1 1 1.7-2M8 4.5h5.5M8 11.5h5.5"/>`,
  image: svg`<rect x="2" y="3" width="12" height="10" rx="1.2"/><circle cx="5.6" cy="6.4" r="1.1"/><path d="m2.5 11.5 3.4-3 2.4 2 2.6-2.6 2.6 2.6"/>`,
  copy: svg`<rect x="5.5" y="5.5" width="8" height="8" rx="1.2"/><path d="M10.5 5.5V3.7A1.2 1.2 0 0 0 9.3 2.5H3.7a1.2 1.2 0 0 0-1.2 1.2v5.6a1.2 1.2 0 0 0 1.2 1.2h1.8"/>`,
  person: svg`<circle cx="8" cy="5.2" r="2.4"/><path d="M3.5 13.5a4.5 4.5 0 0 1 9 0"/>`,
  globe: svg`<circle cx="8" cy="8" r="5.5"/><path d="M2.5 8h11M8 2.5c3.2 3.4 3.2 7.6 0 11M8 2.5c-3.2 3.4-3.2 7.6 0 11"/>`,
  again: svg`<path d="M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3"/>`,
  more: svg`<path d="M3.5 8h0M8 8h0M12.5 8h0" stroke-width="2.2"/>`,
  grant: svg`<path d="M3 8V5m0 3v1.5A4.5 4.5 0 0 0 7.5 14h1A4.5 4.5 0 0 0 13 9.5V5.5M5.5 7.5V3.5M8 7.5V2.5M10.5 7.5V3.5"/>`,
  lines: svg`<path d="M2.5 4h7M2.5 8h11M2.5 12h5"/>`,
  link: svg`<path d="M6.5 9.5 9.5 6.5M7 5l1.3-1.3a2.6 2.6 0 0 1 3.7 3.7L10.7 8.7M9 11l-1.3 1.3A2.6 2.6 0 0 1 4 8.6l1.3-1.3"/>`,
} as const;

export type Icon = keyof typeof PATHS;

export function icon(name: Icon): TemplateResult {
  return html`<svg class="i" viewBox="0 0 16 16" aria-hidden="true">${PATHS[name]}</svg>`;
}

export const MARK = html`<svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
  <path
    d="M4 0h2.2A4.2 4.2 0 0 0 10 6.6 4.2 4.2 0 0 0 13.8 0H16a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4h-2.2A4.2 4.2 0 0 0 10 13.4 4.2 4.2 0 0 0 6.2 20H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z"
  />
</svg>`;

const RING = svg`<path d="M7 1.8A5.2 5.2 0 1 1 1.8 7" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/>`;
const DONE = svg`<path d="m2.8 7.6 2.8 2.8 5.6-6.6" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/>`;
const WAIT = svg`<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.6"/><circle cx="7" cy="7" r="2.4" fill="currentColor"/>`;
const FAIL = svg`<rect x="1.6" y="1.6" width="10.8" height="10.8" rx="2.4" fill="none" stroke="currentColor" stroke-width="1.5"/><path d="m5 5 4 4M9 5 5 9" stroke="currentColor" stroke-width="1.5" stroke-linecap="round"/>`;
const ENDED = svg`<path d="M3.2 3.2l7.6 7.6M10.8 3.2l-7.6 7.6" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/>`;
const OLD = svg`<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.6" stroke-dasharray="3.2 2.2"/>`;
const TODO = svg`<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.2" stroke-dasharray="2 2.1"/>`;

/** A state is a shape and a word, never a colour alone. Without a connection it is not known whether work goes on. */
export function stateMark(state: TaskState | "todo", isLost = false): TemplateResult {
  const [kind, label, shape] =
    state === "input-required" || state === "auth-required"
      ? (["wait", t("waits"), WAIT] as const)
      : state === "completed"
        ? (["done", t("done"), DONE] as const)
        : state === "failed" || state === "rejected"
          ? (["fail", t("failed"), FAIL] as const)
          : state === "canceled"
            ? (["done", t("canceled"), ENDED] as const)
            : state === "todo"
              ? (["todo", t("toDo"), TODO] as const)
              : isLost
                ? (["old", t("lastSeenAs", t("working")), OLD] as const)
                : (["run", t("working"), RING] as const);
  return html`<svg class="st st-${kind}" viewBox="0 0 14 14" role="img" aria-label=${label}>${shape}</svg>`;
}

const DECIDED = svg`<circle cx="7" cy="7" r="6" fill="currentColor"/>`;
const PARTLY = svg`<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M7 1.8a5.2 5.2 0 0 1 0 10.4z" fill="currentColor"/>`;

/** How much of something was seen: none (dashed), a part (half), or all of it, or it was decided (full). */
export function moon(state: "none" | "part" | "all", label: string): TemplateResult {
  const shape = state === "none" ? TODO : state === "part" ? PARTLY : DECIDED;
  return html`<svg
    class="st st-${state === "part" ? "wait" : "done"}"
    viewBox="0 0 14 14"
    role="img"
    aria-label=${label}
  >
    ${shape}
  </svg>`;
}

/** How far the user has decided about a turn of an agent. */
export function turnMark(state: "working" | "open" | "partly" | "decided"): TemplateResult {
  const [kind, label, shape] =
    state === "working"
      ? (["run", t("working"), RING] as const)
      : state === "partly"
        ? (["wait", t("partlyDecided"), PARTLY] as const)
        : state === "decided"
          ? (["done", t("decided"), DECIDED] as const)
          : ([
              "wait",
              t("notDecided"),
              svg`<circle cx="7" cy="7" r="5.2" fill="none" stroke="currentColor" stroke-width="1.6"/>`,
            ] as const);
  return html`<svg class="st st-${kind}" viewBox="0 0 14 14" role="img" aria-label=${label}>${shape}</svg>`;
}

export function toolIcon(name: string): TemplateResult {
  if (/shell|bash|exec|terminal|command/.test(name)) return icon("shell");
  // The name of a plan's tool has "write" in it.
  if (/todo|plan/.test(name)) return icon("list");
  if (name === INVOKE_AGENT) return icon("person");
  if (/web|fetch|browse|url/.test(name)) return icon("globe");
  if (/write|replace|edit|patch/.test(name)) return icon("edit");
  if (/image|screenshot|picture/.test(name)) return icon("image");
  if (/grep|search|glob|find/.test(name)) return icon("search");
  if (/read|list/.test(name)) return icon("file");
  return icon("plug");
}
