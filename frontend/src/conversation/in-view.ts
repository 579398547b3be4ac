// The session in view: what the parts of its page know of it, and of each other.

import type { TaskState } from "../server/protocol.ts";
import type { SessionStream } from "./session-stream.ts";
import type { SessionList } from "../server/sessions.ts";
import type { TaskStore } from "../server/store.ts";
import type { Action } from "./action.ts";

export interface SessionInView {
  /** Session of the address; empty while a task is shown alone. */
  readonly contextId: string;
  /** Session of what is shown; empty until it is known. */
  readonly context: string;
  readonly state: TaskState;
  /** Whether the state was read: at the beginning nothing says that something works. */
  readonly isKnown: boolean;
  readonly stream: SessionStream;
  readonly sessions: SessionList;
  readonly store: TaskStore;
  readonly action: Action;
  /** Show a turn that was begun here. */
  show(taskId: string): void;
  requestUpdate(): void;
}
