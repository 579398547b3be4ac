// What stands above each hunk in one column: which lines it is about, what they stand in, and the choice for it.

import { type EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { type Choice, type Hunk, type HunkWords, MINIMUM, choiceOf, decideHunk, hunkField } from "./diff-hunks.ts";
import { type Fold, MARGIN, foldButton, foldField, foldsIn } from "./folds.ts";
import { scopeOf } from "../scope.ts";

export interface HeadOptions {
  words: HunkWords;
  path: string;
  /** Whether hunks can be chosen. */
  isOpen: boolean;
  open: (hunk: number) => void;
}

const PATHS = { taken: "m3.5 8.5 3 3 6-7", kept: "m4 4 8 8M12 4l-8 8" } as const;

/** Return the buttons that take a hunk, or keep it as it was; pressed once more they take that back. */
export function choiceButtons(view: EditorView, index: number, words: HunkWords, place: string): HTMLButtonElement[] {
  return (["taken", "kept"] as const).map((choice) => {
    const button = document.createElement("button");
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = drawn.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    const said = choice === "taken" ? words.take : words.keep;
    button.type = "button";
    button.name = choice;
    button.dataset.hunk = String(index);
    button.className = "hb";
    button.title = said;
    button.setAttribute("aria-label", `${said}, ${place}`);
    drawn.setAttribute("viewBox", "0 0 16 16");
    drawn.setAttribute("aria-hidden", "true");
    path.setAttribute("d", PATHS[choice]);
    const text = document.createElement("span");
    text.textContent = said;
    button.append(drawn, text);
    button.onclick = () => {
      const now = view.state.field(hunkField)[index];
      if (now) decideHunk(view, index, choiceOf(now) === choice ? "open" : choice);
    };
    return button;
  });
}

/** Show in buttons which choice holds. */
export function markChoice(box: HTMLElement, choice: Choice): void {
  box.classList.toggle("yes", choice === "taken");
  box.classList.toggle("no", choice === "kept");
  for (const button of box.querySelectorAll<HTMLButtonElement>(".hb"))
    button.setAttribute("aria-pressed", String(button.name === choice));
}

class HunkHead extends WidgetType {
  readonly #isChosen: boolean;

  constructor(
    private readonly index: number,
    private readonly all: number,
    private readonly choice: Choice,
    private readonly place: string,
    private readonly scope: string,
    private readonly fold: Fold | undefined,
    private readonly options: HeadOptions,
  ) {
    super();
    this.#isChosen = options.isOpen && all >= MINIMUM;
  }

  override eq(other: HunkHead): boolean {
    return this.#isSame(other) && this.choice === other.choice;
  }

  #isSame(other: HunkHead): boolean {
    return (
      this.index === other.index &&
      this.all === other.all &&
      this.place === other.place &&
      this.scope === other.scope &&
      this.fold?.count === other.fold?.count
    );
  }

  override get estimatedHeight(): number {
    return 32;
  }

  override toDOM(view: EditorView): HTMLElement {
    const { words, open } = this.options;
    const head = document.createElement("div");
    const add = (name: string, text: string): void => {
      const made = head.appendChild(document.createElement(name === "scope" ? "code" : "span"));
      made.className = name;
      made.textContent = text;
    };
    head.className = "cm-hunk";
    add("lines", this.place);
    if (this.scope) add("scope", this.scope);
    const { fold } = this;
    if (fold) head.append(foldButton(words.alike(fold.count), () => open(fold.hunk)));
    if (!this.#isChosen) return head;
    const place = words.place(this.index + 1, this.all);
    head.setAttribute("role", "group");
    head.setAttribute("aria-label", place);
    add("cm-hunkState", "");
    add("of", place);
    head.append(...choiceButtons(view, this.index, words, place));
    this.#mark(head);
    return head;
  }

  override updateDOM(head: HTMLElement, _view: EditorView, from: HunkHead): boolean {
    if (!from.#isSame(this)) return false;
    this.#mark(head);
    return true;
  }

  #mark(head: HTMLElement): void {
    markChoice(head, this.choice);
    const state = head.querySelector(".cm-hunkState");
    if (state)
      state.textContent =
        this.choice === "kept" ? this.options.words.kept : this.choice === "taken" ? this.options.words.taken : "";
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/** Show the heads of hunks, and fold away what lies between them. */
export function hunkHeads(hunks: readonly Hunk[], folds: readonly Fold[], options: HeadOptions): Extension {
  // Lines of context above each hunk, as they were at first.
  const leads = hunks.map((hunk, at) => {
    const before = hunks[at - 1];
    return Math.min(MARGIN, hunk.start - (before ? before.start + before.count : 0));
  });
  return [
    foldField.init(() => folds),
    EditorView.decorations.compute([hunkField, foldField], (state) => {
      const now = state.field(hunkField);
      const closed = new Map(foldsIn(state).map((fold) => [fold.hunk, fold]));
      const found = now.flatMap((hunk, at) => {
        const fold = closed.get(at);
        if (hunk.isLost && !fold) return [];
        closed.delete(at);
        const widget = new HunkHead(
          at,
          now.length,
          choiceOf(hunk),
          placeOf(hunk, options),
          scopeIn(state, hunk, options),
          fold,
          options,
        );
        if (fold) return [Decoration.replace({ widget, block: true }).range(fold.from, fold.to)];
        const line = Math.max(0, Math.min(hunk.start - (leads[at] ?? 0), state.doc.lines - 1));
        return [Decoration.widget({ widget, block: true, side: -2 }).range(state.doc.line(line + 1).from)];
      });
      // What is folded after the last hunk.
      for (const fold of closed.values())
        found.push(Decoration.replace({ widget: new LastFold(fold, options), block: true }).range(fold.from, fold.to));
      return Decoration.set(found, true);
    }),
  ];
}

class LastFold extends WidgetType {
  constructor(
    private readonly fold: Fold,
    private readonly options: HeadOptions,
  ) {
    super();
  }

  override eq(other: LastFold): boolean {
    return this.fold.count === other.fold.count;
  }

  override get estimatedHeight(): number {
    return 32;
  }

  override toDOM(): HTMLElement {
    const line = document.createElement("div");
    const { fold, options } = this;
    line.className = "cm-fold";
    line.append(foldButton(options.words.alike(fold.count), () => options.open(fold.hunk)));
    return line;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/** Say which lines a hunk is about: those that will be written, or where none are, those that go. */
function placeOf({ start, count, oldStart, oldLines }: Hunk, { words }: HeadOptions): string {
  return count
    ? words.lines(start + 1, start + count)
    : words.lines(oldStart + 1, oldStart + Math.max(1, oldLines.length));
}

function scopeIn(state: EditorState, { start }: Hunk, { path }: HeadOptions): string {
  const { doc } = state;
  return scopeOf(path, Math.min(start + 1, doc.lines), (line) => doc.line(line).text);
}
