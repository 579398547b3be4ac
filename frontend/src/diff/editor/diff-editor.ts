// A diff whose right side can be edited: CodeMirror, in a shadow root so that its styles need no inline style.
// A chunk of its own, which comes with the first diff.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { Compartment, EditorState, type Extension, Text, Transaction } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import type { Mapped } from "../change-map.ts";
import { differenceBetween, differenceField, differenceOf, oldText } from "../chunks.ts";
import { ChosenLine, beginningOf, chosenField } from "./chosen-line.ts";
import { codeColours } from "./code-colours.ts";
import { type CommentEvents, type CommentWords, commentsSet, lineComments, placed } from "./diff-comments.ts";
import {
  type Choice,
  type Hunk,
  type HunkWords,
  changesBetween,
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
import { lineBlock } from "./line-blocks.ts";
import type { LineComment, Place, WrittenLine } from "./line-comments.ts";
import { type LineWords, lineMarks, mineField, proposedText } from "./line-marks.ts";
import type { LineNumbers } from "../long-rows.ts";
import { watchScreen } from "../on-screen.ts";
import { coloursSet, removedLines } from "./removed-lines.ts";
import { SideBySide, type SideWords } from "./side-by-side.ts";
import { MARKED } from "../../text/safe.ts";
import { EditorSeen, type SeenState, seenLines } from "./editor-seen.ts";

export { COLOURS, THEME };

export interface DiffView extends Mapped {
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

/** Px above a hunk that is scrolled to: what stays at the top covers some. */
const HUNK_MARGIN = 60;

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
  let chosen: ChosenLine | undefined;
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
      if (update.transactions.some((one) => one.isUserEvent("select")))
        queueMicrotask(() => chosen?.choose(update.view));
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

  const choice = (chosen = new ChosenLine({
    parent,
    right,
    left,
    proposed,
    isOpen: options.isOpen,
    onChoose: options.onChoose,
  }));
  const chunksOf = () => differenceOf(right.state)?.chunks ?? [];
  const unwatch = options.isOpen
    ? watchDiffTouch({
        parent,
        right,
        left,
        chooseAt: choice.chooseAt,
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
      if (!choice.isIn(right) && hunk) {
        const anchor = beginningOf(right, hunk);
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
      choice.choose(right);
    },
    goHunk: (direction) => choice.goHunk(direction),
    decide: (wanted) => choice.decide(wanted),
    place: (isOld) => choice.place(isOld),
    get hunkTops() {
      return chunksOf().map(({ newFrom }) => {
        const { doc } = right.state;
        const at = newFrom < doc.lines ? lineBlock(right, newFrom).top : right.contentHeight;
        return right.documentTop + at;
      });
    },
    get seenHunks() {
      return seen?.hunks ?? [];
    },
    showHunk(hunk) {
      const { doc } = right.state;
      const { from } = doc.line(Math.min((chunksOf()[hunk]?.newFrom ?? 0) + 1, doc.lines));
      right.dispatch({ effects: EditorView.scrollIntoView(from, { y: "start", yMargin: HUNK_MARGIN }) });
    },
    destroy() {
      choice.destroy();
      unwatch?.();
      screen?.end();
      stick?.destroy();
      shown.destroy();
    },
  };
}
