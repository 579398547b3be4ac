// Whether the turns of the session in view are those that the server has: they are asked for again when something changed.

import type { WholeSession } from "../server/sessions.ts";
import type { SessionInView } from "./in-view.ts";

export class Freshness {
  #known: WholeSession | undefined;
  /** What was known of the session when its turns were asked for. */
  #compared = "";

  constructor(private readonly view: SessionInView) {}

  /** Begin with another session. */
  reset(): void {
    this.#known = undefined;
    this.#compared = "";
  }

  /** Ask for the turns again when something of the session has changed. */
  compare(): void {
    const { stream } = this.view;
    const known = this.#facts(this.view.sessions.get(this.view.contextId));
    if (known === this.#compared) return;
    this.#compared = known;
    if (stream.session) stream.refresh();
  }

  /** Take over what the server said of the session. */
  learn(): void {
    const { session } = this.view.stream;
    if (!session || session === this.#known) return;
    this.#known = session;
    this.#compared = this.#facts(session);
    this.view.sessions.put(session);
  }

  /** Return what tells that the session changed: facts of lists, told changes, and turns that are not shown yet. */
  #facts(facts: ReturnType<SessionInView["sessions"]["get"]>): string {
    const { contextId, sessions, store, stream } = this.view;
    const unknown = [...store.rows.values()].filter(
      (row) => row.contextId === contextId && !stream.session?.tasks.some((turn) => turn.id === row.id),
    );
    const { changed, turns, title, archived } = facts ?? {};
    return [changed, turns, title, archived, sessions.told(contextId), ...unknown.map(({ id }) => id)].join();
  }
}
