// Sending what was written: a slash command or a prompt.

import { type Scope, getTask, prompt, runCommand } from "../client.ts";
import type { Written } from "../parts/prompt/prompt-box.ts";
import { ended } from "./rewind.ts";
import type { TaskStore } from "../server/store.ts";

/** A session, or a folder in which a new one begins. */
export type Place = { contextId: string } | { workspace: string };

/** Return whether a message is a slash command, and not a text that begins with a path. */
export function isCommand(text: string): boolean {
  return /^\/[A-Za-z][\w:.-]*(\s|$)/.test(text);
}

/** Send a message as the next task; return its id. Throws an ApiError. */
export async function sendWritten(written: Written, place: Place, store: TaskStore): Promise<string> {
  const settings = {
    ...(written.mode ? { mode: written.mode } : {}),
    ...(written.model ? { model: written.model } : {}),
  };
  let options: Scope = { ...place, ...settings };
  if (isCommand(written.text)) {
    const taskId = await runCommand(written.text, options);
    store.refresh();
    return taskId;
  }
  if (written.effort) {
    // A2A has no setting for it; the agent has a command, which is a task of the session before this one.
    const chosen = await runCommand(`/effort ${written.effort}`, options);
    await ended(chosen);
    options = { ...settings, contextId: (await getTask(chosen)).contextId };
  }
  const begun = await prompt(written.text, { ...options, images: written.images });
  store.put(begun);
  return begun.id;
}
