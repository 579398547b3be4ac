// Rewinding the session in view to a checkpoint, and branching from one of its turns.

import { html, nothing } from "lit";
import { sessionStatus } from "../client.ts";
import { factsOf, shownPath } from "../questions/question.ts";
import { branch, rewind } from "./rewind.ts";
import type { CallItem, PromptItem } from "../task/task-fold.ts";
import { PAGE } from "../place.ts";
import { go } from "../parts/base.ts";
import "../parts/rows/rewind-ask.ts";
import type { SessionInView } from "./in-view.ts";

export class Rewinds {
  /** A rewind that the user is asked about, since the server would not. */
  asked: { what: string; checkpoint: string; files: string[] } | undefined;

  constructor(private readonly view: SessionInView) {}

  /** Rewind to a checkpoint. The server asks and names the files, unless everything is allowed: then the page asks. */
  async ask(item: PromptItem | CallItem): Promise<void> {
    const { context, stream } = this.view;
    const { checkpoint } = item;
    const workspace = stream.session?.workspace ?? stream.fold.row?.workspace ?? "";
    if (!context || !checkpoint) return;
    const status = await sessionStatus({ contextId: context }).catch(() => undefined);
    if (status?.mode && status.mode !== "yolo") {
      await this.#rewind(checkpoint);
      return;
    }
    const { folds } = stream;
    const from = folds.indexOf(stream.foldOf(item));
    const files = new Set(
      folds.slice(from).flatMap((fold) => fold.changedFiles.map((file) => shownPath(file.path, workspace))),
    );
    this.asked = {
      what: item.is === "prompt" ? item.text : factsOf(item.call, workspace).object,
      checkpoint,
      files: [...files],
    };
    this.view.requestUpdate();
  }

  /** Go on from the turn of a prompt in a session of its own, and show that. */
  async branch(item: PromptItem): Promise<void> {
    const { context, stream } = this.view;
    const { name } = stream.foldOf(item);
    const workspace = stream.session?.workspace ?? "";
    const begin = () => branch(context, name, workspace);
    if (context) await this.#leadOn(begin, (taskId) => go(`${PAGE}task/${taskId}`));
  }

  /** Forget what is asked. */
  close(): void {
    this.asked = undefined;
    this.view.requestUpdate();
  }

  /** Return the question about a rewind; `closed` is called when it was refused. */
  card(closed: () => void) {
    const { asked } = this;
    if (!asked) return nothing;
    return html`<isthmus-rewind
      class="docked"
      .what=${asked.what}
      .files=${asked.files}
      @agreed=${() => void this.#rewind(asked.checkpoint)}
      @closed=${() => {
        this.close();
        closed();
      }}
    ></isthmus-rewind>`;
  }

  async #rewind(checkpoint: string): Promise<void> {
    this.close();
    const { context } = this.view;
    if (context)
      await this.#leadOn(
        () => rewind(context, checkpoint),
        (taskId) => this.view.show(taskId),
      );
  }

  /** Do something that ends at another task, and show it. */
  async #leadOn(begin: () => Promise<string>, show: (taskId: string) => void): Promise<void> {
    const { action, store } = this.view;
    if (action.isUnderWay) return;
    await action.run(async () => {
      const taskId = await begin();
      store.refresh();
      show(taskId);
    });
  }
}
