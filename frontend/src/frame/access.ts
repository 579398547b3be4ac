// Whether this browser is let in: by its token, or by a code that pairs it.

import { isOlderThan, reloadFor } from "./installation.ts";
import { problemOf } from "../problems/problem.ts";
import { problemText } from "../problems/words.ts";
import { ApiError, type Session, api, forget, knowDevice, pair, takeCode, token } from "../server/session.ts";
import { t } from "../words.ts";

/** A server that is not reached is asked again after this time. */
const AGAIN_MS = 3000;

/** The access of this browser to the server; tells "change", and "entered" once it is let in. */
export class Access extends EventTarget {
  /** What the server said of this browser and itself; undefined until it is let in. */
  session: Session | undefined;
  isRefused = false;
  isPairing = false;
  /** Whether the server has a newer page than this one. */
  isOld = false;
  problem = "";

  async enter(): Promise<void> {
    const code = takeCode();
    if (code) {
      await this.pair(code);
      return;
    }
    if (!token()) {
      this.isRefused = true;
      this.#tell();
      return;
    }
    try {
      const session = await api<Session>("GET", "session");
      if (isOlderThan(session.entry) && reloadFor(session.entry)) return;
      knowDevice(session);
      this.session = session;
      this.isRefused = false;
      this.dispatchEvent(new Event("entered"));
      this.#tell();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.refuse();
      else {
        this.problem = problemText("noReach");
        setTimeout(() => void this.enter(), AGAIN_MS);
        this.#tell();
      }
    }
  }

  async pair(code: string): Promise<void> {
    this.isPairing = true;
    this.problem = "";
    this.#tell();
    try {
      await pair(code);
    } catch (error) {
      // A link that was used before does no harm to a browser that is let in already.
      if (!token()) {
        this.problem = problemOf(error);
        this.isRefused = true;
        return;
      }
    } finally {
      this.isPairing = false;
      this.#tell();
    }
    await this.enter();
  }

  /** After a lost connection: the server may be another version. What is typed stays until the user reloads. */
  async compare(): Promise<void> {
    const session = await api<Session>("GET", "session").catch(() => undefined);
    if (!session) return;
    this.session = session;
    this.isOld = isOlderThan(session.entry);
    this.#tell();
  }

  refuse(): void {
    forget();
    this.session = undefined;
    this.problem = t("pairAgain");
    this.isRefused = true;
    this.#tell();
  }

  #tell(): void {
    this.dispatchEvent(new Event("change"));
  }
}
