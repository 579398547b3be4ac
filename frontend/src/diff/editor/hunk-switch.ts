// The choice for a hunk on a phone: a switch of two parts below it, which stays at the lower border while its hunk is there.

import { type Extension } from "@codemirror/state";
import { Decoration, EditorView, WidgetType } from "@codemirror/view";
import { type Choice, type Hunk, type HunkWords, MINIMUM, choiceOf, hunkField } from "./diff-hunks.ts";
import { choiceButtons, markChoice } from "./hunk-heads.ts";
import { lineBlock } from "./line-blocks.ts";
import { watchScreen, windowOf } from "../on-screen.ts";

const PHONE = "(max-width: 719px)";
/** Height in px of the switch with what is around it. */
const HEIGHT = 66;

function switchOf(view: EditorView, index: number, all: number, words: HunkWords): HTMLElement {
  const group = document.createElement("div");
  const place = words.place(index + 1, all);
  group.className = "seg";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", place);
  group.append(...choiceButtons(view, index, words, place).reverse());
  return group;
}

class HunkSwitch extends WidgetType {
  constructor(
    private readonly index: number,
    private readonly all: number,
    private readonly choice: Choice,
    private readonly words: HunkWords,
  ) {
    super();
  }

  override eq(other: HunkSwitch): boolean {
    return this.index === other.index && this.all === other.all && this.choice === other.choice;
  }

  override get estimatedHeight(): number {
    return matchMedia(PHONE).matches ? HEIGHT : 0;
  }

  override toDOM(view: EditorView): HTMLElement {
    const box = document.createElement("div");
    box.className = "cm-switch";
    box.append(switchOf(view, this.index, this.all, this.words));
    markChoice(box, this.choice);
    return box;
  }

  override updateDOM(box: HTMLElement, _view: EditorView, from: HunkSwitch): boolean {
    if (from.index !== this.index || from.all !== this.all) return false;
    markChoice(box, this.choice);
    return true;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

/** Show a switch below each hunk. */
export function hunkSwitches(words: HunkWords): Extension {
  return EditorView.decorations.compute([hunkField], (state) => {
    const { doc } = state;
    const hunks = state.field(hunkField);
    if (hunks.length < MINIMUM) return Decoration.none;
    return Decoration.set(
      hunks.flatMap((hunk, at) => {
        if (hunk.isLost) return [];
        const widget = new HunkSwitch(at, hunks.length, choiceOf(hunk), words);
        const { start, count } = hunk;
        if (count)
          return [
            Decoration.widget({ widget, block: true, side: 5 }).range(doc.line(Math.min(start + count, doc.lines)).to),
          ];
        return start < doc.lines
          ? [Decoration.widget({ widget, block: true, side: -0.5 }).range(doc.line(start + 1).from)]
          : [Decoration.widget({ widget, block: true, side: 6 }).range(doc.length)];
      }),
      true,
    );
  });
}

/** Keeps the switch of the hunk at the lower border in view. */
export class StickySwitch {
  readonly #dom = document.createElement("div");
  readonly #phone = matchMedia(PHONE);
  #screen = watchScreen(() => this.#look());
  #shown = -1;

  constructor(
    private readonly view: EditorView,
    private readonly parent: HTMLElement,
    private readonly words: HunkWords,
  ) {
    this.#dom.className = "stick";
    this.#dom.hidden = true;
    parent.append(this.#dom);
    this.soon();
  }

  soon(): void {
    this.#screen.soon();
  }

  #look(): void {
    const hunks = this.view.state.field(hunkField);
    const at = this.#phone.matches && hunks.length >= MINIMUM ? this.#cutOff(hunks) : -1;
    if (at !== this.#shown) {
      this.#shown = at;
      this.#dom.hidden = at < 0;
      this.#dom.replaceChildren();
      if (at >= 0) {
        const box = this.#dom.appendChild(document.createElement("div"));
        box.append(switchOf(this.view, at, hunks.length, this.words));
      }
    }
    const hunk = hunks[at];
    if (hunk) markChoice(this.#dom, choiceOf(hunk));
  }

  /** Return the hunk that goes on below the lower border. */
  #cutOff(hunks: readonly Hunk[]): number {
    const { doc } = this.view.state;
    const { bottom } = windowOf(this.parent);
    const limit = bottom - this.view.documentTop;
    return hunks.findIndex(({ start, count, isLost }) => {
      if (isLost) return false;
      const first = start < doc.lines ? this.view.lineBlockAt(doc.line(start + 1).from).top : this.view.contentHeight;
      const last = count
        ? this.view.lineBlockAt(doc.line(Math.min(start + count, doc.lines)).from).bottom
        : first + HEIGHT;
      const own = count ? last : start < doc.lines ? lineBlock(this.view, start).top : last;
      return first < limit - HEIGHT && own > limit + 1;
    });
  }

  destroy(): void {
    this.#screen.end();
    this.#dom.remove();
  }
}
