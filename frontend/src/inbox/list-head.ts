// The head of the list of questions: how many wait, which are listed, and the search in them.

import { html, nothing } from "lit";
import { icon } from "../frame/icons.ts";
import { isComposing } from "../frame/keys.ts";
import { type QuestionWord, ask } from "../questions/words.ts";
import { visibleLine } from "../text/safe.ts";
import { t } from "../words.ts";
import type { Filter, Kind } from "./filter.ts";

interface Head {
  waiting: number;
  agents: readonly string[];
  kinds: readonly Kind[];
  filter: Filter;
  /** The words that are searched for; undefined without a search. */
  search: string | undefined;
  filtered: (filter: Filter) => void;
  searched: (search: string | undefined) => void;
}

const KIND_WORDS: Readonly<Record<Kind, QuestionWord>> = {
  edits: "edits",
  commands: "commands",
  forms: "forms",
  others: "others",
};

export function listHead(head: Head) {
  return html`<div class="head">
      <h1>${t("inbox")}</h1>
      <span class="t3 sm num">${head.waiting ? t("wait", head.waiting) : nothing}</span>
      <span class="right row list-tools">
        ${head.agents.length || head.kinds.length || head.filter ? filterField(head) : nothing}
        ${
          head.waiting
            ? html`<button
                class="b icon quiet"
                aria-label=${ask("search")}
                aria-expanded=${head.search !== undefined}
                title="${ask("search")} (/)"
                @click=${() => head.searched(head.search === undefined ? "" : undefined)}
              >
                ${icon("search")}
              </button>`
            : nothing
        }
      </span>
    </div>
    ${head.search === undefined ? nothing : searchField(head, head.search)}`;
}

function filterField({ agents, kinds, filter, filtered }: Head) {
  const option = (value: string, words: string) =>
    html`<option value=${value} ?selected=${value === filter}>${words}</option>`;
  return html`<span class="list-filter"
    ><select aria-label=${ask("show")} @change=${(event: Event) => filtered((event.target as HTMLSelectElement).value)}>
      ${option("", ask("all"))} ${kinds.map((kind) => option(`kind:${kind}`, ask(KIND_WORDS[kind])))}
      ${agents.map((name) => option(`agent:${name}`, visibleLine(name, 60)))}</select
    >${icon("down")}</span
  >`;
}

function searchField({ searched }: Head, search: string) {
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || isComposing(event)) return;
    event.preventDefault();
    event.stopPropagation();
    searched(undefined);
  };
  return html`<div class="list-search">
    <input
      class="field"
      type="search"
      aria-label=${ask("search")}
      placeholder=${ask("search")}
      .value=${search}
      dir="auto"
      @input=${(event: Event) => searched((event.target as HTMLInputElement).value)}
      @keydown=${press}
    />
  </div>`;
}
