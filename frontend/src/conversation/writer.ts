// Messages of the user for the session in view: sent as its next turn, or kept on the server until the present one ends.

import { newId } from "../client.ts";
import type { Written } from "../parts/prompt/prompt-box.ts";
import { ENDED } from "../server/protocol.ts";
import { sendWritten } from "./sending.ts";
import { t } from "../words.ts";
import type { SessionInView } from "./in-view.ts";

/** The field that messages are written in. */
export interface MessageBox {
  clear(): void;
  putBack(text: string, images: Written["images"]): void;
}

export class MessageWriter {
  /** The messages that are on their way to the server, to wait there. */
  #queueing: Promise<void> = Promise.resolve();

  constructor(private readonly view: SessionInView) {}

  /** Send what was written, or let it wait for the end of the present turn. */
  async write(written: Written, box: MessageBox): Promise<void> {
    const { action, context, contextId, state, stream } = this.view;
    if (!context || action.isUnderWay) return;
    if (ENDED.has(state) && !(stream.session?.queued ?? []).length) {
      if (await this.#send(written, context)) box.clear();
      return;
    }
    if (!contextId) {
      action.say(t("notWhileWorking"));
      return;
    }
    // The next message can be written at once; they arrive in order, and one that does not comes back.
    box.clear();
    this.#queueing = this.#queueing.then(() => this.#queue(written, box));
  }

  /** Send the message of a turn that did not end well again, as the next turn; what is being written stays. */
  async again(text: string): Promise<void> {
    const { action, context } = this.view;
    if (context && !action.isUnderWay) await this.#send({ text, mode: "", images: [] }, context);
  }

  /** Keep what is written and not sent for other devices; what this page has stays, whatever comes of it. */
  keepDraft(text: string): void {
    const { contextId, sessions } = this.view;
    if (contextId) sessions.change(contextId, { do: "draft", text }).catch(() => undefined);
  }

  async #queue({ effort, text, mode, model = "", images }: Written, box: MessageBox): Promise<void> {
    const { action, contextId, sessions, stream } = this.view;
    const wait = (text: string, images: Written["images"]) =>
      sessions.change(contextId, { do: "queue", id: newId(), text, mode, model, images });
    action.say("");
    try {
      if (effort) await wait(`/effort ${effort}`, []);
      await wait(text, images);
      stream.refresh();
    } catch (error) {
      action.fail(error);
      box.putBack(text, images);
    }
  }

  /** Send a message as the next turn of the session, and show it. */
  async #send(written: Written, contextId: string): Promise<boolean> {
    const { action, store } = this.view;
    return action.run(async () => this.view.show(await sendWritten(written, { contextId }, store)));
  }
}
