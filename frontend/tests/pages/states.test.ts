// @vitest-environment happy-dom
// What pages show before their content is there, when it does not come, and when there is none.

import { type TemplateResult, html, render } from "lit";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import "../../src/pages/devices-page.ts";
import "../../src/pages/diff-page.ts";
import "../../src/pages/files-page.ts";
import "../../src/pages/history-page.ts";
import "../../src/pages/settings-page.ts";
import "../../src/pages/tools-page.ts";
import type { PageElement } from "../../src/parts/base.ts";
import { json, serve } from "../support/server.ts";

const SESSION = { workspaces: ["/work"], agent: "Isthmus", tasks: true };
const UNREACHED = "The server cannot be reached. Try again.";
let place: HTMLElement;

async function drawn(template: TemplateResult): Promise<HTMLElement> {
  render(template, place);
  const element = place.firstElementChild as PageElement;
  // The answer, and what is drawn of it.
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  await vi.dynamicImportSettled();
  await element.updateComplete;
  return element;
}

const textOf = (element: Element) => (element.textContent ?? "").replace(/\s+/g, " ");
const again = (element: Element) =>
  [...element.querySelectorAll("button")].find((button) => button.textContent?.includes("Try again"));

beforeEach(() => {
  place = document.createElement("div");
  document.body.append(place);
  vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
});
afterEach(() => {
  render(html``, place);
  place.remove();
});

describe("a page whose content does not come", () => {
  it.each([
    [
      "Settings",
      html`<isthmus-settings></isthmus-settings>`,
      { files: [], settings: [], notes: [] },
      "Settings in effect",
    ],
    [
      "Servers",
      html`<isthmus-tools .session=${SESSION}></isthmus-tools>`,
      { servers: [], tools: [], skills: [], subagents: [], problems: [], manages: true },
      "Skills",
    ],
    ["Devices", html`<isthmus-devices></isthmus-devices>`, { devices: [], this: "" }, ""],
  ])("says why, and tries again when it is told to: %s", async (_name, template, content, words) => {
    let isReached = false;
    serve(() => {
      if (!isReached) throw new TypeError("no network");
      return json(content);
    });
    const page = await drawn(template);
    expect(page.querySelector("[role=alert]")?.textContent).toBe(UNREACHED);
    expect(page.querySelector(".plate")).toBeNull();
    isReached = true;
    again(page)?.click();
    await drawn(template);
    expect(page.querySelector("[role=alert]")).toBeNull();
    expect(textOf(page).toLowerCase()).toContain(words.toLowerCase());
    expect(page.querySelector(".plate")).toBeNull();
  });

  it("has empty rows in its place before", async () => {
    serve(() => new Promise<Response>(() => undefined) as unknown as Response);
    for (const template of [
      html`<isthmus-settings></isthmus-settings>`,
      html`<isthmus-tools .session=${SESSION}></isthmus-tools>`,
      html`<isthmus-devices></isthmus-devices>`,
    ])
      expect((await drawn(template)).querySelectorAll(".plate").length).toBeGreaterThan(0);
  });
});

describe("the history", () => {
  const history = (isReached: boolean, isLoaded: boolean) => {
    const store = Object.assign(new EventTarget(), { isReached });
    const list = { sessions: [], isLoaded, hasMore: false };
    return drawn(html`<isthmus-history .store=${store} .list=${list}></isthmus-history>`);
  };

  it("says that there is no session, that the list was not loaded, or has empty rows", async () => {
    expect((await history(true, false)).querySelectorAll(".plate")).toHaveLength(3);
    expect(textOf(await history(false, false))).toContain("not loaded: the server cannot be reached");
    const empty = await history(true, true);
    expect(empty.querySelector(".plate")).toBeNull();
    expect(empty.querySelectorAll(".empty p")).toHaveLength(2);
  });
});

describe("the changes of a session", () => {
  it("say that there is no such session, and lead to the history", async () => {
    serve(() => json({ error: { message: "there is no task nothing" } }, 404));
    const page = await drawn(html`<isthmus-session-diff taskId="x" .taskId=${"nothing"}></isthmus-session-diff>`);
    expect(page.querySelector("[role=alert]")?.textContent).toBe("No such session");
    expect(page.querySelector("a.b")?.getAttribute("href")).toContain("history");
  });

  it("say why they were not compared, and try again", async () => {
    const asked = serve(() => {
      throw new TypeError("no network");
    });
    const page = await drawn(html`<isthmus-session-diff .taskId=${"one"}></isthmus-session-diff>`);
    expect(page.querySelector("[role=alert]")?.textContent).toBe(UNREACHED);
    const before = asked.length;
    again(page)?.click();
    expect(asked.length).toBeGreaterThan(before);
  });
});

describe("the files", () => {
  const files = (isReached: boolean, isLoaded: boolean) =>
    drawn(html`<isthmus-files .reviews=${{ filePages: [], isReached, isLoaded }}></isthmus-files>`);

  it("say that no companion shows any, or that the list was not loaded, and offer nothing to choose", async () => {
    expect(textOf(await files(true, true))).toContain("isthmus companion --editor web");
    expect(textOf(await files(false, false))).toContain("not loaded: the server cannot be reached");
    expect(textOf(await files(true, true))).not.toContain("Choose a file");
  });
});
