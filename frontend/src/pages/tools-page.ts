import { type TemplateResult, html, nothing } from "lit";
import { customElement, property, state } from "lit/decorators.js";
import { execute } from "../client.ts";
import { icon } from "../frame/icons.ts";
import { problemOf } from "../problems/problem.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { type Session, api } from "../server/session.ts";
import { type Word, t } from "../words.ts";
import { PageElement, go } from "../parts/base.ts";
import { failedToLoad, platesOf } from "../parts/loading.ts";
import { PAGE } from "../place.ts";
import { codeText } from "../parts/code-text.ts";

interface Named {
  name: string;
  description: string;
}

interface Server extends Named {
  state: string;
  transport: string;
  problem: string | null;
  summary: string[];
  tools: Named[];
  prompts: string[];
  resources: string[];
  isFile: boolean;
}

interface Offered {
  workspace: string;
  servers: Server[] | null;
  tools: Named[];
  skills: Named[];
  subagents: Named[];
  problems: string[];
  manages: boolean;
}

const STATES: Record<string, Word> = {
  connected: "serverConnected",
  connecting: "serverConnecting",
  disconnected: "serverDisconnected",
  "needs login": "serverLogin",
  disabled: "serverDisabled",
};
const AGAIN_MS = 2_000;

/** MCP servers with their states, tools, skills and subagents; what can be done with them is a slash command. */
@customElement("isthmus-tools")
export class ToolsPage extends PageElement {
  @property({ attribute: false }) session!: Session;
  @state() private offered: Offered | undefined;
  @state() private problem = "";
  @state() private busy = "";
  @state() private workspace = "";
  #timer = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.workspace = this.session.workspaces[0] ?? "";
    void this.#load();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
  }

  override render() {
    const { offered } = this;
    return html`<main class="pane surface span">
      <div class="head">
        <h1>${t("toolsPage")}</h1>
        ${
          this.session.workspaces.length > 1
            ? html`<select
                class="field right"
                aria-label=${t("folder")}
                @change=${(event: Event) => {
                  this.workspace = (event.target as HTMLSelectElement).value;
                  this.offered = undefined;
                  void this.#load();
                }}
              >
                ${this.session.workspaces.map((folder) => html`<option value=${folder} ?selected=${folder === this.workspace}>${visibleLine(folder)}</option>`)}
              </select>`
            : nothing
        }
        ${offered?.servers?.length ? html`<button class="b small ${this.session.workspaces.length > 1 ? "" : "right"}" ?disabled=${this.busy !== ""} @click=${() => void this.#run(["mcp", "refresh"], "")}>${t("refresh")}</button>` : nothing}
      </div>
      <div class="scroll listing" tabindex="0">
        ${this.problem ? (offered ? html`<p class="problem" role="alert">${this.problem}</p>` : failedToLoad(this.problem, () => void this.#load())) : nothing}
        ${
          !offered
            ? this.problem
              ? nothing
              : html`<ul>
                  ${platesOf(3)}
                </ul>`
            : html` ${offered.problems.map((text) => html`<p class="problem">${visibleLine(text, 500)}</p>`)}
              ${offered.servers === null ? html`<p class="empty">${t("otherAgent")}</p>` : this.#servers(offered.servers, offered.manages)}
              ${this.#list("tools", offered.tools)} ${this.#list("skills", offered.skills)}
              ${this.#list("subagents", offered.subagents)}`
        }
      </div>
    </main>`;
  }

  #servers(servers: Server[], manages: boolean): TemplateResult {
    return html`<section aria-labelledby="servers">
      <h2 id="servers">${t("servers")}</h2>
      ${
        servers.length
          ? html`<ul class="rows">
              ${servers.map((server) => this.#server(server, manages))}
            </ul>`
          : html`<p class="t2">${codeText(t("noServers"))}</p>`
      }
    </section>`;
  }

  #server(server: Server, manages: boolean): TemplateResult {
    const name = visibleLine(server.name, 80);
    const act = (word: Word, ...path: string[]) =>
      html`<button
        class="b small"
        ?disabled=${this.busy !== ""}
        aria-label="${t(word)} ${name}"
        @click=${() => void this.#run(["mcp", ...path], server.name)}
      >
        ${this.busy === `${path[0]} ${server.name}` ? t("sending") : t(word)}
      </button>`;
    return html`<li class="server">
      <div class="line">
        ${icon("plug")}
        <span class="grow cut"
          ><b dir="auto">${name}</b>
          <span class="pill ${server.state === "needs login" ? "acc" : ""}"
            >${server.isFile ? t("notRead") : t(STATES[server.state] ?? "serverDisconnected")}</span
          ></span
        >
        ${
          !manages || server.isFile
            ? nothing
            : html`<span class="row">
                ${server.state === "needs login" ? act("logIn", "auth") : nothing}
                ${server.state === "disabled" ? act("enable", "enable") : html`${act("refresh", "refresh")}${act("disable", "disable")}`}</span
              >`
        }
      </div>
      ${server.problem ? html`<p class="problem" dir="auto">${server.problem.split("\n").map((line) => html`${visible(line)}<br />`)}</p>` : nothing}
      ${server.description ? html`<p class="t2" dir="auto">${visibleLine(server.description)}</p>` : nothing}
      ${server.summary.map((line) => html`<p class="t3 sm" dir="auto">${visibleLine(line)}</p>`)}
      ${
        server.tools.length
          ? html`<details>
              <summary>${t("toolCount", server.tools.length)}</summary>
              ${named(server.tools)}
            </details>`
          : nothing
      }
      ${server.prompts.length ? html`<p class="t2 sm">${t("prompts")} ${server.prompts.map((text) => visibleLine(text, 80)).join(", ")}</p>` : nothing}
      ${server.resources.length ? html`<p class="t2 sm">${t("resources")} ${server.resources.map((text) => visibleLine(text, 80)).join(", ")}</p>` : nothing}
    </li>`;
  }

  #list(word: "tools" | "skills" | "subagents", items: Named[]): TemplateResult {
    return html`<section aria-label=${t(word)}>
      <h2>${t(word)} <span class="t3 num">${items.length}</span></h2>
      ${items.length ? named(items) : html`<p class="t3">${t("none")}</p>`}
    </section>`;
  }

  async #load(): Promise<void> {
    clearTimeout(this.#timer);
    const workspace = this.workspace;
    try {
      const offered = await api<Offered>("GET", `tools?${new URLSearchParams({ workspace })}`);
      if (workspace !== this.workspace) return;
      this.offered = offered;
      this.problem = "";
      if (this.isConnected && offered.servers?.some((server) => server.state === "connecting"))
        this.#timer = window.setTimeout(() => void this.#load(), AGAIN_MS);
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  /** Run a command; the page of its task is shown, which has its questions and how it ends. */
  async #run(path: string[], name: string): Promise<void> {
    this.busy = `${path[1]} ${name}`;
    this.problem = "";
    try {
      go(`${PAGE}task/${await execute(path, name, { workspace: this.workspace })}`);
    } catch (error) {
      this.problem = problemOf(error);
    } finally {
      this.busy = "";
    }
  }
}

function named(items: Named[]): TemplateResult {
  return html`<dl class="named">
    ${items.map(
      (item) =>
        html`<dt><code dir="auto">${visibleLine(item.name, 100)}</code></dt>
          <dd dir="auto">${visibleLine(item.description, 240)}</dd>`,
    )}
  </dl>`;
}
