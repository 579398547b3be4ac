// @vitest-environment happy-dom

import { render } from "lit";
import { expect, it } from "vitest";
import { callRow } from "../../../src/parts/rows/call-row.ts";
import type { Rows } from "../../../src/parts/rows/task-rows.ts";
import type { CallItem } from "../../../src/task/task-fold.ts";

const AT = new Date(2026, 8, 1, 14, 6, 31).getTime();
const item = {
  is: "call",
  key: "t/c:1",
  since: AT - 12_000,
  lines: 1,
  call: {
    tool_call_id: "1",
    tool_name: "run_shell_command",
    status: "EXECUTING",
    input_parameters: { command: "pytest -q" },
    live_content: "test_189 PASSED\n",
  },
} as unknown as CallItem;

function drawn(lostAt: number): HTMLElement {
  const rows = { now: AT, workspace: "", asking: new Set(), open: new Set(), rests: false, lostAt } as unknown as Rows;
  const place = document.createElement("div");
  render(callRow(item, rows), place);
  return place;
}

it("counts the time of a call that runs", () => {
  const row = drawn(0);
  expect(row.querySelector(".ends")?.textContent).toContain("0:12");
  expect(row.querySelector("svg[role=img]")?.getAttribute("aria-label")).toBe("Working");
});

it("says when a call was last seen to run once the connection is lost", () => {
  const row = drawn(AT);
  expect(row.querySelector(".ends")?.textContent).toContain("last seen 14:06:31");
  expect(row.querySelector(".ends")?.textContent).not.toContain("0:12");
  expect(row.querySelector("svg[role=img]")?.getAttribute("aria-label")).toBe("Working when last seen");
  expect(row.querySelector<HTMLElement & { isCut: boolean }>("isthmus-output")?.isCut).toBe(true);
});
