// @vitest-environment happy-dom

import { afterEach, expect, it, vi } from "vitest";
import { changeStream } from "../../src/server/changes.ts";
import { TaskStore } from "../../src/server/store.ts";
import { json, serve } from "../support/server.ts";

const CALL = { data: { tool_call_id: "c", tool_name: "x", confirmation_request: { options: [] } } };
const AT = Date.UTC(2026, 0, 1);

/** Return tasks of a state, one a second before the other. */
function tasks(name: string, count: number, state: string, first = 0) {
  return Array.from({ length: count }, (_, at) => ({
    id: `${name}-${first + at}`,
    status: { state, timestamp: new Date(AT - 1000 * (first + at)).toISOString(), message: { parts: [CALL] } },
  }));
}

afterEach(() => {
  vi.restoreAllMocks();
});

it("knows all questions that wait, also those behind a hundred tasks that changed later", async () => {
  vi.spyOn(changeStream, "listen").mockReturnValue();
  for (const each of ["start", "stop", "renew"] as const) vi.spyOn(changeStream, each).mockReturnValue();
  const asked = serve(({ path }) => {
    const query = new URL(path, "http://here").searchParams;
    if (query.get("status") !== "TASK_STATE_INPUT_REQUIRED")
      return json({ tasks: tasks("done", 100, "TASK_STATE_COMPLETED"), nextPageToken: "all-100", totalSize: 600 });
    const first = Number(query.get("pageToken") ?? 0);
    const next = first + 100 < 500 ? String(first + 100) : "";
    return json({ tasks: tasks("waits", 100, "TASK_STATE_INPUT_REQUIRED", first), nextPageToken: next });
  });
  const store = new TaskStore();
  store.start();
  await vi.waitFor(() => {
    expect(store.isLoaded).toBe(true);
  });
  store.stop();
  expect(store.questions).toHaveLength(500);
  expect([asked.length, store.total, store.hasMore]).toEqual([6, 600, true]);
});
