// A diff whose right side can be edited: CodeMirror, in a shadow root so that its styles need no inline style.
// A chunk of its own, which comes with the first diff.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import {
  Compartment,
  EditorState,
  type Extension,
  StateEffect,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state";
import { Decoration, EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { CODE_TAGS } from "./code-tags.ts";
import { type CommentEvents, type CommentWords, commentsSet, lineComments, placed } from "./diff-comments.ts";
import {
  COMPARISON,
  type Hunk,
  type HunkWords,
  changesBetween,
  decideHunk,
  hunkBars,
  hunkField,
  hunkHeads,
  hunksOf,
  hunksRestored,
  sameLine,
} from "./diff-hunks.ts";
import type { LineComment, Place } from "./line-comments.ts";
import type { LineNumbers } from "./long-rows.ts";
import { watchScreen } from "./on-screen.ts";
import { MARKED } from "../safe.ts";
import { EditorSeen, type SeenState, seenLines } from "./editor-seen.ts";

export const COLOURS = HighlightStyle.define(
  CODE_TAGS.map(({ name, tag }) => ({
    tag,
    color: `var(--c-${name})`,
    ...(name === "com" ? { fontStyle: "italic" } : {}),
  })),
);

export const THEME = EditorView.theme({
  "&": {
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    font: "var(--t-code) var(--font-code)",
    fontVariantLigatures: "none",
  },
  ".cm-content": { caretColor: "var(--mine)", padding: "4px 0" },
  ".cm-scroller": { fontFamily: "inherit", lineHeight: "20px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-3)", border: "0" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--mine)", borderLeftWidth: "2px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--select) !important" },
  ".cm-changedLine, .cm-inlineChangedLine": {
    backgroundColor: "var(--add-bg) !important",
    boxShadow: "inset 3px 0 var(--add-bar)",
  },
  ".cm-changedText": { background: "var(--add-word) !important", borderBottom: "1.5px solid var(--add-bar)" },
  ".cm-deletedChunk": {
    backgroundColor: "var(--del-bg) !important",
    boxShadow: "inset 3px 0 var(--del-bar)",
    paddingLeft: "6px",
  },
  ".cm-deletedChunk .cm-deletedText, .cm-deletedLine del": {
    background: "var(--del-word) !important",
    textDecoration: "none",
    borderBottom: "1.5px dashed var(--del-bar)",
  },
  "&.cm-merge-a .cm-changedLine": {
    backgroundColor: "var(--del-bg) !important",
    boxShadow: "inset 3px 0 var(--del-bar)",
  },
  "&.cm-merge-a .cm-changedText": {
    background: "var(--del-word) !important",
    borderBottom: "1.5px dashed var(--del-bar)",
  },
  ".cm-changedLineGutter, .cm-merge-b .cm-changedLineGutter": { background: "var(--add-bar) !important" },
  ".cm-deletedLineGutter, &.cm-merge-a .cm-changedLineGutter": { background: "var(--del-bar) !important" },
  ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
  ".cm-lineNumbers": { minWidth: "44px" },
  ".cm-hunk": {
    display: "flex",
    alignItems: "center",
    gap: "8px",
    height: "36px",
    padding: "0 8px 0 12px",
    background: "var(--bg)",
    color: "var(--text-2)",
    font: "var(--t-xs) var(--font-ui)",
  },
  ".cm-hunkState": { marginLeft: "auto", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap" },
  ".cm-hunk button, .cm-comment button": {
    font: "500 12px/18px var(--font-ui)",
    border: "1px solid var(--line-2)",
    borderRadius: "6px",
    background: "var(--raised)",
    color: "var(--text)",
    padding: "3px 10px",
    cursor: "pointer",
    flex: "none",
  },
  ".cm-hunk button[aria-pressed=true]": { background: "var(--ink)", borderColor: "var(--ink)", color: "var(--on-ink)" },
  ".cm-hunk button + button": { marginLeft: "-4px" },
  // The distance is padding of the widget: the editor does not see margins.
  ".cm-comment": { padding: "6px 12px", whiteSpace: "normal" },
  ".cm-comment > div": {
    padding: "8px 10px",
    border: "1px solid var(--line-2)",
    borderRadius: "8px",
    background: "var(--raised)",
    boxShadow: "var(--sh-1)",
    font: "var(--t-sm) var(--font-ui)",
    color: "var(--text-2)",
  },
  ".cm-comment > div > div": {
    display: "flex",
    alignItems: "center",
    justifyContent: "space-between",
    gap: "8px",
    marginBottom: "6px",
  },
  ".cm-comment textarea": {
    display: "block",
    width: "100%",
    boxSizing: "border-box",
    font: "var(--t-md) var(--font-ui)",
    color: "var(--text)",
    background: "var(--surface)",
    border: "1px solid var(--control)",
    borderRadius: "6px",
    padding: "6px 8px",
    resize: "vertical",
    fieldSizing: "content",
  },
  ".cm-comment textarea:focus-visible, .cm-hunk button:focus-visible, .cm-comment button:focus-visible": {
    outline: "2px solid var(--focus)",
    outlineOffset: "1px",
  },
  ".cm-line.cm-chosenLine": {
    boxShadow: "inset 3px 0 var(--focus)",
    outline: "1px solid var(--focus)",
    outlineOffset: "-1px",
  },
  ".cm-deletedLine.cm-chosenLine": { outline: "1px solid var(--focus)" },
  "@media (max-width: 719px), (pointer: coarse)": {
    ".cm-hunk": { height: "56px" },
    ".cm-hunk button, .cm-comment button": {
      minHeight: "44px",
      font: "500 14px/18px var(--font-ui)",
      padding: "3px 14px",
    },
    ".cm-comment textarea": { fontSize: "16px" },
    ".cm-hunkState": { display: "none" },
    ".cm-hunk > span:first-child": { marginRight: "auto" },
  },
  ".cm-collapsedLines": {
    background: "var(--bg)",
    color: "var(--text-3)",
    font: "var(--t-xs) var(--font-ui)",
    padding: "6px 12px",
  },
  ".cm-heading, .cm-heading *": { color: "var(--text-3) !important", backgroundColor: "var(--bg)" },
  ".cm-specialChar": { color: "var(--danger)" },
});

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
  setComments(comments: readonly LineComment[]): void;
  focusComment(id: number): void;
  /** Go to the next hunk, or with -1 to the one before. */
  goHunk(direction: 1 | -1): void;
  /** Take the hunk of the chosen line, or keep it as it was. */
  decide(isKept: boolean): void;
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
  label: { before: string; after: string; hunk: HunkWords; comment: CommentWords };
  onChange: (text: string) => void;
  onChoose: (place: Place) => void;
  /** Another hunk was on the screen as a whole. */
  onSeen: () => void;
}

/** An empty text has one empty line, which nobody removed. */
const NOTHING_BEFORE = EditorView.theme({ ".cm-deletedChunk": { display: "none" } });
const HEADING = Decoration.line({ class: "cm-heading" });

/** Return the line numbers of a text; of a part of a file its own, with the headings between parts set apart. */
function numbered(numbers: readonly number[] | undefined): Extension {
  if (!numbers) return lineNumbers();
  const headings = EditorView.decorations.compute([], ({ doc }) =>
    Decoration.set(
      numbers.slice(0, doc.lines).flatMap((number, at) => (number === 0 ? [HEADING.range(doc.line(at + 1).from)] : [])),
    ),
  );
  return [lineNumbers({ formatNumber: (line) => String(numbers[line - 1] || "") }), headings];
}

const textOf = (text: string): Text => Text.of(text.split(/\r\n?|\n/));

/** Show a diff in a shadow root. */
export function showDiff(root: ShadowRoot, options: DiffOptions): DiffView {
  const language = new Compartment();
  const editing = new Compartment();
  const before = textOf(options.before);
  const proposed = textOf(options.proposed);
  const after = textOf(options.after);
  const hunks = options.isOpen && !options.isNew ? hunksOf(before, proposed) : [];
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
  const editable = (isEditable: boolean): Extension => [
    EditorState.readOnly.of(!isEditable),
    EditorView.editable.of(isEditable),
    EditorView.contentAttributes.of(isEditable ? {} : { tabindex: "0" }),
  ];
  const common: Extension = [
    drawSelection(),
    highlightSpecialChars({ addSpecialChars: MARKED }),
    syntaxHighlighting(COLOURS),
    THEME,
    options.before ? [] : NOTHING_BEFORE,
    EditorView.lineWrapping,
    language.of([]),
    chosenField,
    lineComments(options.label.comment, { onComment: options.onComment, onLeave }),
    keymap.of(defaultKeymap),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) seen?.textChanged();
      if (update.geometryChanged || update.viewportChanged) screen?.soon();
      if (update.transactions.some((one) => one.isUserEvent("select"))) queueMicrotask(() => choose(update.view));
    }),
  ];
  const own: Extension = [
    common,
    seenLines,
    numbered(options.numbers?.after),
    hunkBars(hunks, options.label.hunk),
    history(),
    keymap.of([
      ...historyKeymap,
      {
        key: "Escape",
        run: () => {
          onLeave();
          return true;
        },
      },
    ]),
    editing.of(editable(options.editable)),
    EditorView.contentAttributes.of({ "aria-label": options.label.after }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange(update.state.doc.toString());
    }),
  ];
  // A part of a file has no more than the lines around its changes.
  const collapse = options.numbers ? {} : { collapseUnchanged: { margin: 3, minSize: 6 } };
  const parent = root.querySelector("div") as HTMLDivElement;
  let left: EditorView | undefined;
  let right: EditorView;
  let shown: { destroy(): void };
  if (options.sides) {
    const merge = new MergeView({
      a: {
        doc: before,
        extensions: [
          common,
          numbered(options.numbers?.before),
          editable(false),
          hunkHeads(hunks, options.label.hunk),
          EditorView.contentAttributes.of({ "aria-label": options.label.before }),
        ],
      },
      b: { doc: proposed, extensions: own },
      parent,
      root,
      ...collapse,
      diffConfig: COMPARISON,
      gutter: true,
      highlightChanges: true,
    });
    left = merge.a;
    right = merge.b;
    shown = merge;
  } else {
    right = new EditorView({
      doc: proposed,
      parent,
      root,
      extensions: [
        own,
        unifiedMergeView({
          original: before,
          ...collapse,
          diffConfig: COMPARISON,
          mergeControls: false,
          gutter: true,
          highlightChanges: true,
        }),
      ],
    });
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
    return view === left
      ? { side: "old", line: number }
      : { side: "new", line: sameLine(right.state.doc, proposed, number) };
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

  function clicked(event: MouseEvent): void {
    const target = event.target as Element;
    if (!options.isOpen || target.closest("button, .cm-comment, .cm-hunk, .cm-collapsedLines")) return;
    const chunk = target.closest(".cm-deletedChunk");
    if (chunk) {
      const element = target.closest(".cm-deletedLine");
      const lines = [...chunk.querySelectorAll(".cm-deletedLine")];
      const position = right.posAtDOM(chunk);
      const start = right.state.doc.lineAt(position).number - 1;
      const hunk = right.state.field(hunkField).find((one) => one.start === start);
      if (!element || !hunk) return;
      deleted?.element.classList.remove("cm-chosenLine");
      deleted = { line: hunk.oldStart + lines.indexOf(element) + 1, element };
      element.classList.add("cm-chosenLine");
      right.dispatch({ effects: chosenSet.of(false) });
      options.onChoose({ side: "old", line: deleted.line });
      return;
    }
    const view = views.find((one) => one.dom.contains(target));
    if (!view) return;
    const position = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    const { main } = view.state.selection;
    // Where text can be selected or typed the cursor is in its place already.
    if (main.empty && view.state.doc.lineAt(main.head).number !== view.state.doc.lineAt(position).number)
      view.dispatch({ selection: { anchor: position } });
    choose(view);
  }
  parent.addEventListener("click", clicked);

  const found = LanguageDescription.matchFilename(languages, options.path.split("/").pop() ?? "");
  if (found !== null) {
    void found
      .load()
      .then((support) => {
        for (const view of views) view.dispatch({ effects: language.reconfigure(support) });
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
      if (isEditable) right.focus();
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
    goHunk,
    decide(isKept) {
      const at = hunkOfLine();
      if (at < 0) goHunk(1);
      else decideHunk(right, at, isKept);
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
      screen?.end();
      shown.destroy();
    },
  };
}
