import { html, nothing } from "lit";
import { customElement, state } from "lit/decorators.js";
import { problemOf } from "../problems/problem.ts";
import { visible, visibleLine } from "../text/safe.ts";
import { api } from "../server/session.ts";
import { t } from "../words.ts";
import { PageElement } from "../parts/base.ts";
import { failedToLoad, platesOf } from "../parts/loading.ts";

interface Shown {
  files: string[];
  settings: { key: string; value: string; path: string }[];
  notes: string[];
}

/** The settings that are in force and their files. They are changed in the files. */
@customElement("isthmus-settings")
export class SettingsPage extends PageElement {
  @state() private shown: Shown | undefined;
  @state() private problem = "";

  override connectedCallback(): void {
    super.connectedCallback();
    this.#load();
  }

  #load(): void {
    this.problem = "";
    api<Shown>("GET", "settings").then(
      (shown) => {
        this.shown = shown;
      },
      (error: unknown) => {
        this.problem = problemOf(error);
      },
    );
  }

  override render() {
    const { shown } = this;
    return html`<main class="pane surface span">
      <div class="head"><h1>${t("settings")}</h1></div>
      <div class="scroll listing" tabindex="0">
        ${this.problem ? failedToLoad(this.problem, () => this.#load()) : nothing}
        ${
          !shown
            ? this.problem
              ? nothing
              : html`<ul>
                  ${platesOf(3)}
                </ul>`
            : html` <section>
                  <h2>${t("files")}</h2>
                  ${
                    shown.files.length
                      ? html`<ul>
                          ${shown.files.map((path) => html`<li><code dir="auto">${visible(path)}</code></li>`)}
                        </ul>`
                      : html`<p class="t2">${t("noSettingsFile")}</p>`
                  }
                </section>
                ${
                  shown.notes.length
                    ? html`<section>
                        <h2>${t("notes")}</h2>
                        ${shown.notes.map((note) => html`<p class="t2" dir="auto">${visibleLine(note, 1000)}</p>`)}
                      </section>`
                    : nothing
                }
                <section>
                  <h2>${t("inForce")}</h2>
                  <p class="t3 sm">${t("inForceText")}</p>
                  ${
                    shown.settings.length
                      ? html`<div class="table">
                          <table>
                            <thead>
                              <tr>
                                <th scope="col">${t("setting")}</th>
                                <th scope="col">${t("value")}</th>
                                <th scope="col">${t("fromFile")}</th>
                              </tr>
                            </thead>
                            <tbody>
                              ${shown.settings.map(
                                (item) =>
                                  html`<tr>
                                    <th scope="row"><code>${visibleLine(item.key)}</code></th>
                                    <td dir="auto">${visibleLine(item.value)}</td>
                                    <td class="t3" dir="auto">${visibleLine(item.path)}</td>
                                  </tr>`,
                              )}
                            </tbody>
                          </table>
                        </div>`
                      : nothing
                  }
                </section>`
        }
      </div>
    </main>`;
  }
}
