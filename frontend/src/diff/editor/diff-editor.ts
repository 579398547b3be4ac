// A diff whose right side can be edited: CodeMirror, in a shadow root so that its styles need no inline style.
// A chunk of its own, which comes with the first diff.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import {
  Compartment,
  EditorState,
  type Extension,
  StateEffect,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state";
import { Decoration, EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { differenceBetween, differenceField, oldText } from "../chunks.ts";
import { codeColours } from "./code-colours.ts";
import { type CommentEvents, type CommentWords, commentsSet, lineComments, placed } from "./diff-comments.ts";
import {
  type Choice,
  type Hunk,
  type HunkWords,
  changesBetween,
  decideHunk,
  hunkField,
  hunkUnits,
  hunksOf,
  hunksRestored,
  sameLine,
} from "./diff-hunks.ts";
import { DIFF_STYLES } from "./diff-styles.ts";
import { COLOURS, DIFF_THEME, THEME } from "./diff-theme.ts";
import { foldLines, foldsOf, unfolded } from "./folds.ts";
import { type Touched, watchDiffTouch } from "./diff-touch.ts";
import { hunkHeads } from "./hunk-heads.ts";
import { StickySwitch, hunkSwitches } from "./hunk-switch.ts";
import type { LineComment, Place, WrittenLine } from "./line-comments.ts";
import { type LineWords, lineMarks, mineField, proposedText } from "./line-marks.ts";
import type { LineNumbers } from "../long-rows.ts";
import { watchScreen } from "../on-screen.ts";
import { coloursSet, removedLines } from "./removed-lines.ts";
import { SideBySide, type SideWords } from "./side-by-side.ts";
import { MARKED } from "../../text/safe.ts";
import { EditorSeen, type SeenState, seenLines } from "./editor-seen.ts";

export { COLOURS, THEME };

const chosenSet = StateEffect.define<boolean>();
/** Whether the line of the cursor is the one that the user has chosen. */
const chosenField = StateField.define<boolean>({
  create: () => false,
  update(isChosen, transaction) {
    for (const effect of transaction.effects) if (effect.is(chosenSet)) return effect.value;
    return isChosen || transaction.isUserEvent("select");
  },
  provide: (field) =>
    EditorView.decorations.compute([field, "selection", "doc"], (state) =>
      state.field(field)
        ? Decoration.set([
            Decoration.line({ class: "cm-chosenLine" }).range(state.doc.lineAt(state.selection.main.head).from),
          ])
        : Decoration.none,
    ),
});

export interface DiffView {
  readonly text: string;
  readonly hunks: readonly Hunk[];
  /** What was on the screen, if all of the change is to be seen. */
  readonly seen: EditorSeen | undefined;
  /** Scroll to what was not on the screen yet. */
  goUnseen(): void;
  setEditable(isEditable: boolean): void;
  /** Put the cursor where the user has chosen a line, or into the first hunk. */
  focusText(): void;
  setComments(comments: readonly LineComment[]): void;
  focusComment(id: number): void;
  /** Return the line that a comment on the proposal stands below now. */
  writtenLine(id: number): WrittenLine | undefined;
  /** Scroll to a line of the proposal. */
  showLine(line: number): void;
  /** Go to the next hunk, or with -1 to the one before. */
  goHunk(direction: 1 | -1): void;
  /** Decide about the hunk of the chosen line. */
  decide(choice: Choice): void;
  /** Return the line to comment on, on the old side if that is wanted and there is one. */
  place(isOld: boolean): Place;
  destroy(): void;
}

export interface DiffOptions extends CommentEvents {
  numbers?: LineNumbers;
  before: string;
  /** The text as it was proposed, and as it is to be written now. */
  proposed: string;
  after: string;
  /** Choices of hunks in `after`, if it was shown before. */
  hunks: readonly Hunk[] | undefined;
  path: string;
  sides: boolean;
  isNew: boolean;
  /** Whether something can be chosen and commented on at all. */
  isOpen: boolean;
  editable: boolean;
  /** Whether all of the change is to be seen; what was seen of it before, if it was shown before. */
  seen: SeenState | boolean;
  label: { caption: SideWords; before: string; after: string; line: LineWords; hunk: HunkWords; comment: CommentWords };
  onChange: (text: string) => void;
  onChoose: (place: Place) => void;
  /** A gesture asks to edit at the chosen line, or to comment on it. */
  onTouched: (what: Touched) => void;
  /** Another hunk was on the screen as a whole. */
  onSeen: () => void;
}

const textOf = (text: string): Text => Text.of(text.split(/\r\n?|\n/));

/** Show a diff in a shadow root. */
export function showDiff(root: ShadowRoot, options: DiffOptions): DiffView {
  const { styleSheet } = DIFF_STYLES;
  if (styleSheet && !root.adoptedStyleSheets.includes(styleSheet)) root.adoptedStyleSheets.push(styleSheet);
  const language = new Compartment();
  const editing = new Compartment();
  const before = textOf(options.before);
  const proposed = textOf(options.proposed);
  const after = textOf(options.after);
  const hunks = options.isNew || options.numbers ? [] : hunksOf(before, proposed);
  /** The chosen line of the old text where it has no editor. */
  let deleted: { line: number; element: Element } | undefined;
  let active: EditorView | undefined;
  let screen: ReturnType<typeof watchScreen> | undefined;
  let seen: EditorSeen | undefined;
  /** The comment whose field is to have the focus, until the user has done with it. */
  let awaited: number | undefined;
  const onLeave = (): void => {
    awaited = undefined;
    options.onLeave();
  };
  const leave = (): boolean => {
    onLeave();
    return true;
  };
  const editable = (isEditable: boolean): Extension => [
    EditorState.readOnly.of(!isEditable),
    EditorView.editable.of(isEditable),
    EditorView.contentAttributes.of(isEditable ? {} : { tabindex: "0" }),
  ];
  const look = (shows: "old" | "new" | "both"): Extension =>
    lineMarks({ shows, words: options.label.line, numbers: options.numbers });
  const common: Extension = [
    highlightSpecialChars({ addSpecialChars: MARKED }),
    syntaxHighlighting(COLOURS),
    DIFF_THEME,
    THEME,
    EditorView.lineWrapping,
    language.of([]),
    chosenField,
    differenceField,
    lineComments(options.label.comment, { onComment: options.onComment, onLeave }),
    keymap.of([...defaultKeymap, { key: "Escape", run: leave }]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) seen?.textChanged();
      if (update.geometryChanged || update.viewportChanged) screen?.soon();
      if (update.transactions.some((one) => one.isUserEvent("select"))) queueMicrotask(() => choose(update.view));
    }),
  ];
  // A part of a file has no more than the lines around its changes.
  const first = options.numbers ? [] : differenceBetween(before, proposed).chunks;
  const unfold = (hunk: number): void => {
    for (const view of views) view.dispatch({ effects: unfolded.of(hunk) });
  };
  const own: Extension = [
    oldText.of(before),
    proposedText.of(proposed),
    common,
    seenLines,
    hunkUnits(hunks),
    mineField,
    history(),
    keymap.of(historyKeymap),
    editing.of(editable(options.editable)),
    EditorView.contentAttributes.of({ "aria-label": options.label.after }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange(update.state.doc.toString());
    }),
  ];
  const parent = root.querySelector("div") as HTMLDivElement;
  const { words, isOpen } = { words: options.label.hunk, isOpen: options.isOpen };
  let left: EditorView | undefined;
  let right: EditorView;
  let shown: { destroy(): void };
  let stick: StickySwitch | undefined;
  if (options.sides) {
    const sides = new SideBySide({
      root,
      parent,
      old: {
        doc: before,
        extensions: [
          common,
          look("old"),
          editable(false),
          foldLines(foldsOf(first, before, true), words.alike, unfold),
          EditorView.contentAttributes.of({ "aria-label": options.label.before }),
        ],
      },
      now: {
        doc: proposed,
        extensions: [own, look("new"), foldLines(foldsOf(first, proposed, false), words.alike, unfold)],
      },
      neck: { words, isOpen },
      words: options.label.caption,
    });
    left = sides.left;
    right = sides.right;
    shown = sides;
  } else {
    right = new EditorView({
      doc: proposed,
      parent,
      root,
      extensions: [
        own,
        look("both"),
        removedLines(options.numbers?.before, options.label.line.removed),
        hunkHeads(hunks, foldsOf(first, proposed, false), { words, isOpen, path: options.path, open: unfold }),
        isOpen ? hunkSwitches(words) : [],
        EditorView.editorAttributes.of({ class: options.isNew ? "" : "cm-both" }),
        EditorView.updateListener.of(() => stick?.soon()),
      ],
    });
    stick = isOpen ? new StickySwitch(right, parent, words) : undefined;
    shown = right;
  }
  // Put back what was chosen and typed before: from the proposal on, so that what the agent changed stays in view.
  if (!after.eq(proposed)) {
    right.dispatch({
      changes: changesBetween(proposed, after),
      annotations: Transaction.addToHistory.of(false),
      effects: options.hunks && options.hunks.length === hunks.length ? hunksRestored.of(options.hunks) : [],
    });
  }
  const views = left ? [left, right] : [right];
  seen = options.seen
    ? new EditorSeen(right, left, before, parent, options.seen === true ? undefined : options.seen)
    : undefined;
  screen = seen
    ? watchScreen(() => {
        if (seen?.look()) options.onSeen();
      })
    : undefined;

  /** Make the line of the cursor in an editor the chosen one. */
  function choose(view: EditorView): void {
    if (!options.isOpen) return;
    deleted?.element.classList.remove("cm-chosenLine");
    deleted = undefined;
    active = view;
    for (const other of views)
      if (other.state.field(chosenField) !== (other === view))
        other.dispatch({ effects: chosenSet.of(other === view) });
    options.onChoose(placeIn(view));
  }

  function placeIn(view: EditorView): Place {
    const { number } = view.state.doc.lineAt(view.state.selection.main.head);
    if (view === left) return { side: "old", line: number };
    // What is kept as it was is not in the proposal.
    const kept = right.state
      .field(hunkField)
      .find(({ start, count, isKept, isLost }) => isKept && !isLost && start < number && number <= start + count);
    return kept
      ? { side: "old", line: kept.oldStart + number - kept.start }
      : { side: "new", line: sameLine(right.state.doc, proposed, number), shown: number };
  }

  function hunkOfLine(): number {
    if (active !== right) return -1;
    const line = right.state.doc.lineAt(right.state.selection.main.head).number - 1;
    return right.state
      .field(hunkField)
      .findIndex((hunk) => !hunk.isLost && hunk.start <= line && line < hunk.start + Math.max(1, hunk.count));
  }

  function goHunk(direction: 1 | -1): void {
    const line = active === right ? right.state.doc.lineAt(right.state.selection.main.head).number - 1 : -1;
    const live = right.state.field(hunkField).filter((hunk) => !hunk.isLost);
    const next = direction > 0 ? live.find((hunk) => hunk.start > line) : live.findLast((hunk) => hunk.start < line);
    const hunk = next ?? (active === right ? undefined : live[0]);
    if (!hunk) return;
    const anchor = right.state.doc.line(Math.min(hunk.start + 1, right.state.doc.lines)).from;
    right.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    right.focus();
    choose(right);
  }

  /** Choose the line at a place of the window; return whether there is one. */
  function chooseAt(target: Element, x: number, y: number): boolean {
    if (
      !options.isOpen ||
      target.closest("button, .cm-comment, .cm-hunk, .cm-fold, .cm-filler, .cm-switch, .stick, .neck")
    )
      return false;
    const element = target.closest<HTMLElement>(".cm-deletedLine");
    if (element) {
      deleted?.element.classList.remove("cm-chosenLine");
      deleted = { line: Number(element.dataset.line), element };
      element.classList.add("cm-chosenLine");
      right.dispatch({ effects: chosenSet.of(false) });
      options.onChoose({ side: "old", line: deleted.line });
      return true;
    }
    const view = views.find((one) => one.dom.contains(target));
    if (!view) return false;
    const position = view.posAtCoords({ x, y }, false);
    const { main } = view.state.selection;
    // Where text can be selected or typed the cursor is in its place already.
    if (main.empty && view.state.doc.lineAt(main.head).number !== view.state.doc.lineAt(position).number)
      view.dispatch({ selection: { anchor: position } });
    choose(view);
    return true;
  }
  const clicked = ({ target, clientX, clientY }: MouseEvent): void => {
    chooseAt(target as Element, clientX, clientY);
  };
  parent.addEventListener("click", clicked);
  const unwatch = options.isOpen
    ? watchDiffTouch({
        parent,
        right,
        left,
        chooseAt,
        wasSeen: (hunk) => seen?.wasSeen(hunk) ?? true,
        onTouched: options.onTouched,
      })
    : undefined;

  const found = LanguageDescription.matchFilename(languages, options.path.split("/").pop() ?? "");
  if (found !== null) {
    void found
      .load()
      .then((support) => {
        for (const view of views) view.dispatch({ effects: language.reconfigure(support) });
        return left ? [] : codeColours(before.toString(), options.path);
      })
      .then((colours) => {
        if (colours.length) right.dispatch({ effects: coloursSet.of(colours) });
      })
      .catch(() => undefined);
  }
  return {
    get text() {
      return right.state.doc.toString();
    },
    get hunks() {
      return right.state.field(hunkField);
    },
    seen,
    goUnseen() {
      seen?.go((view, position) => view.dispatch({ effects: EditorView.scrollIntoView(position, { y: "start" }) }));
    },
    setEditable(isEditable) {
      right.dispatch({ effects: editing.reconfigure(editable(isEditable)) });
    },
    focusText() {
      const hunk = right.state.field(hunkField).find((one) => !one.isLost);
      if (active !== right && hunk) {
        const anchor = right.state.doc.line(Math.min(hunk.start + 1, right.state.doc.lines)).from;
        right.dispatch({
          selection: { anchor },
          effects: EditorView.scrollIntoView(anchor, { y: "nearest", yMargin: 60 }),
        });
      }
      right.focus();
    },
    setComments(comments) {
      const old = comments.filter((one) => one.side === "old");
      const now = comments.filter((one) => one.side === "new");
      const lineOfNew = ({ line }: LineComment) => ({
        line: sameLine(proposed, right.state.doc, line),
        isAbove: false,
      });
      left?.dispatch({ effects: commentsSet.of({ comments: old, lineOf: ({ line }) => ({ line, isAbove: false }) }) });
      right.dispatch({
        effects: commentsSet.of({
          comments: left ? now : comments,
          lineOf: (one) =>
            one.side === "new" ? lineOfNew(one) : { line: sameLine(before, right.state.doc, one.line), isAbove: true },
        }),
      });
    },
    writtenLine(id) {
      const found = right.state.field(placed).find(({ comment }) => comment.id === id && comment.side === "new");
      if (!found) return undefined;
      const { number, text } = right.state.doc.lineAt(Math.min(found.position, right.state.doc.length));
      return { line: number, text };
    },
    focusComment(id) {
      awaited = id;
      const focus = (): void => parent.querySelector<HTMLElement>(`.cm-comment[data-id="${id}"] textarea`)?.focus();
      for (const view of views) {
        const found = view.state.field(placed).find((one) => one.comment.id === id);
        // What is out of view is not drawn.
        if (found) view.dispatch({ effects: EditorView.scrollIntoView(found.position, { yMargin: 120 }) });
      }
      focus();
      // Unless the user has done with it by then: what is typed next is meant for the page.
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          if (awaited === id && !parent.querySelector(".cm-comment textarea:focus")) focus();
        }),
      );
    },
    showLine(line) {
      const { from } = right.state.doc.line(sameLine(proposed, right.state.doc, line));
      right.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      choose(right);
    },
    goHunk,
    decide(choice) {
      const at = hunkOfLine();
      if (at < 0) goHunk(1);
      else if (options.isOpen) decideHunk(right, at, choice);
    },
    place(isOld) {
      if (deleted) return { side: "old", line: deleted.line };
      const live = right.state.field(hunkField);
      const hunk = live[Math.max(0, hunkOfLine())];
      if (isOld && active !== left && hunk && hunk.oldLines.length) return { side: "old", line: hunk.oldStart + 1 };
      if (active) return placeIn(active);
      return {
        side: "new",
        line: hunk
          ? Math.min(
              sameLine(right.state.doc, proposed, Math.min(hunk.start + 1, right.state.doc.lines)),
              proposed.lines,
            )
          : 1,
      };
    },
    destroy() {
      parent.removeEventListener("click", clicked);
      unwatch?.();
      screen?.end();
      stick?.destroy();
      shown.destroy();
    },
  };
}
