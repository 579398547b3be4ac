// The state of a session that no event tells, asked for at the ends of turns.

import { type SessionStatus, sessionStatus } from "../client.ts";

/** Reads the state of the session that is shown; asks once for each `moment`. */
export class StatusReader {
  status: SessionStatus | undefined;
  #asked = "";
  #place = "";

  constructor(private readonly changed: () => void) {}

  /** Ask, unless this was asked for before. Nothing is known of another place until it answers. */
  look(place: { contextId: string } | { workspace: string }, moment: string): void {
    const name = JSON.stringify(place);
    const wanted = `${name} ${moment}`;
    if (wanted === this.#asked) return;
    this.#asked = wanted;
    if (name !== this.#place) this.status = undefined;
    this.#place = name;
    sessionStatus(place).then(
      (status) => {
        if (this.#asked !== wanted) return;
        this.status = status;
        this.changed();
      },
      () => undefined,
    );
  }
}
