// @vitest-environment happy-dom

import { type TemplateResult, render } from "lit";
import { describe, expect, it } from "vitest";
import { icon, stateMark, toolIcon } from "../../src/frame/icons.ts";
import type { TaskState } from "../../src/server/protocol.ts";

/** Return the word and the lines of an icon. */
function drawn(template: TemplateResult): { word: string; shape: string } {
  const place = document.createElement("div");
  render(template, place);
  const lines = [...place.querySelectorAll("path, rect, circle")].map((line) =>
    [...line.attributes].map(({ name, value }) => `${name}=${value}`).join(" "),
  );
  const svg = place.querySelector("svg[role=img]");
  return { word: svg?.getAttribute("aria-label") ?? "", shape: lines.join("; ") };
}

describe("a mark of a state", () => {
  it("is a dashed ring for work that may have ended since the connection was lost", () => {
    const known = drawn(stateMark("working"));
    const lost = drawn(stateMark("working", true));
    expect(known.shape).not.toContain("stroke-dasharray");
    expect(lost.word).toBe("Working when last seen");
    expect(lost.shape).toContain("stroke-dasharray=3.2 2.2");
    expect(drawn(stateMark("completed", true))).toEqual(drawn(stateMark("completed")));
  });

  it("has a word, whatever the state", () => {
    const states: (TaskState | "todo")[] = [
      "submitted",
      "working",
      "input-required",
      "completed",
      "failed",
      "canceled",
    ];
    for (const state of [...states, "todo" as const]) expect(drawn(stateMark(state)).word).not.toBe("");
  });

  it("has a shape of its own, so that a failed call is not taken for a cancelled or a done one", () => {
    const shapes = (["completed", "failed", "canceled", "working", "todo"] as const).map(
      (state) => drawn(stateMark(state)).shape,
    );
    expect(new Set(shapes).size).toBe(shapes.length);
  });
});

describe("the icon of a tool", () => {
  const shape = (tool: string): string => drawn(toolIcon(tool)).shape;

  it("is a list for a plan, and a pencil for what writes into files", () => {
    expect(shape("write_todos")).toBe(drawn(icon("list")).shape);
    expect(shape("write_file")).toBe(drawn(icon("edit")).shape);
    expect(shape("run_shell_command")).toBe(drawn(icon("shell")).shape);
    expect(shape("grep_search")).toBe(drawn(icon("search")).shape);
    expect(shape("google_web_search")).toBe(drawn(icon("globe")).shape);
    expect(shape("invoke_agent")).toBe(drawn(icon("person")).shape);
    expect(shape("deploy")).toBe(drawn(icon("plug")).shape);
  });
});
