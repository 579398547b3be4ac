// Rewinding a session to a checkpoint, and branching from the end of a task: the agent's own slash commands, over A2A.

import { runCommand } from "../client.ts";
import { TaskFollower } from "../server/task-stream.ts";
import { ENDED, type TaskEvent } from "../server/protocol.ts";
import { ApiError } from "../server/session.ts";
import { t } from "../words.ts";

const DEADLINE_MS = 30_000;

/** Begin to restore a checkpoint; return the id of the task, which asks before files are put back. Throws an ApiError. */
export function rewind(contextId: string, checkpointId: string): Promise<string> {
  return runCommand(`/restore ${checkpointId}`, { contextId });
}

/**
 * Go on from the end of a task in a new session of the same folder; return the id of the new session's first task.
 * The conversation is kept as a saved chat, as `/chat list` shows it. Throws an ApiError.
 */
export async function branch(contextId: string, taskId: string, workspace: string): Promise<string> {
  const name = `branch-${new Date().toISOString().replace(/[-:]|\..*/g, "")}-${taskId.slice(0, 4)}`;
  await ended(await runCommand(`/chat fork ${taskId} ${name}`, { contextId }));
  return runCommand(`/chat resume ${name}`, { workspace });
}

/** Return all events of a task once it has ended well. Throws an ApiError if it fails, or does not end in time. */
export function ended(taskId: string, deadline = DEADLINE_MS): Promise<TaskEvent[]> {
  return new Promise((resolve, reject) => {
    const events: TaskEvent[] = [];
    const finish = (error?: ApiError) => {
      clearTimeout(timer);
      follower.stop();
      if (error) reject(error);
      else resolve(events);
    };
    const timer = setTimeout(() => finish(new ApiError(400, t("tookTooLong"))), deadline);
    const follower: TaskFollower = new TaskFollower(
      taskId,
      (found) => {
        events.push(...found);
        const end = found.find((event) => event.kind === "state" && ENDED.has(event.state));
        if (end?.kind === "state")
          finish(end.state === "completed" ? undefined : new ApiError(400, end.error || end.state));
      },
      (found) => {
        if (found.is === "failed") finish(new ApiError(400, found.reason));
      },
    );
  });
}
