// A diff whose right side can be edited: CodeMirror, in a shadow root so that its styles need no inline style.
// A chunk of its own, which comes with the first diff.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--c-key)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--c-str)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--c-num)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.className, tags.typeName], color: "var(--c-fn)" },
  { tag: [tags.comment, tags.meta], color: "var(--c-com)", fontStyle: "italic" },
]);

export const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", font: "var(--t-code) var(--font-code)", fontVariantLigatures: "none" },
  ".cm-content": { caretColor: "var(--mine)", padding: "4px 0" },
  ".cm-scroller": { fontFamily: "inherit", lineHeight: "20px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-3)", border: "0" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-cursor": { borderLeftColor: "var(--mine)", borderLeftWidth: "2px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--select) !important" },
  ".cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--add-bg) !important", boxShadow: "inset 3px 0 var(--add-bar)" },
  ".cm-changedText": { background: "var(--add-word) !important", borderBottom: "1.5px solid var(--add-bar)" },
  ".cm-deletedChunk": { backgroundColor: "var(--del-bg) !important", boxShadow: "inset 3px 0 var(--del-bar)", paddingLeft: "6px" },
  ".cm-deletedChunk .cm-deletedText, .cm-deletedLine del": { background: "var(--del-word) !important", textDecoration: "none", borderBottom: "1.5px dashed var(--del-bar)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--del-bg) !important", boxShadow: "inset 3px 0 var(--del-bar)" },
  "&.cm-merge-a .cm-changedText": { background: "var(--del-word) !important", borderBottom: "1.5px dashed var(--del-bar)" },
  ".cm-changedLineGutter, .cm-merge-b .cm-changedLineGutter": { background: "var(--add-bar) !important" },
  ".cm-deletedLineGutter, &.cm-merge-a .cm-changedLineGutter": { background: "var(--del-bar) !important" },
  ".cm-changeGutter": { width: "3px", paddingLeft: "0" },
  ".cm-lineNumbers": { minWidth: "44px" },
  ".cm-chunkButtons button, .cm-chunkButtons button[name=accept], .cm-chunkButtons button[name=reject]": { font: "500 12px/18px var(--font-ui)", border: "1px solid var(--line-2)", borderRadius: "6px", background: "var(--raised) !important", color: "var(--text) !important", padding: "2px 8px", margin: "2px", cursor: "pointer" },
  ".cm-collapsedLines": { background: "var(--bg)", color: "var(--text-3)", font: "var(--t-xs) var(--font-ui)", padding: "6px 12px" },
  ".cm-heading, .cm-heading *": { color: "var(--text-3) !important", backgroundColor: "var(--bg)" },
  ".cm-specialChar": { color: "var(--danger)" },
});

/** Return the function that makes the buttons of a hunk: keep the old text, or take the new one as it is. */
function hunkButton(label: DiffOptions["label"]) {
  return (type: "reject" | "accept", action: (event: MouseEvent) => void): HTMLElement => {
    const button = document.createElement("button");
    button.name = type;
    button.textContent = type === "accept" ? label.accept : label.keep;
    button.onmousedown = action;
    return button;
  };
}

export interface DiffView {
  readonly text: string;
  destroy(): void;
}

/** The numbers of the lines of both texts, from the first one; 0 for lines without one. */
export interface LineNumbers {
  before: readonly number[];
  after: readonly number[];
}

export interface DiffOptions {
  numbers?: LineNumbers;
  before: string;
  after: string;
  path: string;
  sides: boolean;
  editable: boolean;
  label: { before: string; after: string; accept: string; keep: string };
  onChange: (text: string) => void;
}

const HEADING = Decoration.line({ class: "cm-heading" });

/** Return the line numbers of a text; of a part of a file its own, with the headings between parts set apart. */
function numbered(numbers: readonly number[] | undefined): Extension {
  if (!numbers) return lineNumbers();
  const headings = EditorView.decorations.compute([], ({ doc }) => Decoration.set(
    numbers.slice(0, doc.lines).flatMap((number, at) => (number === 0 ? [HEADING.range(doc.line(at + 1).from)] : [])),
  ));
  return [lineNumbers({ formatNumber: (line) => String(numbers[line - 1] || "") }), headings];
}

/** Show a diff in a shadow root. */
export function showDiff(root: ShadowRoot, options: DiffOptions): DiffView {
  const language = new Compartment();
  const common: Extension = [
    drawSelection(), highlightSpecialChars(), syntaxHighlighting(COLOURS), THEME,
    EditorView.lineWrapping, language.of([]),
  ];
  const own: Extension = [
    common, numbered(options.numbers?.after),
    history(), keymap.of([...defaultKeymap, ...historyKeymap]),
    EditorState.readOnly.of(!options.editable), EditorView.editable.of(options.editable),
    EditorView.contentAttributes.of({ "aria-label": options.label.after }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) options.onChange(update.state.doc.toString());
    }),
  ];
  // A part of a file has no more than the lines around its changes.
  const collapse = options.numbers ? {} : { collapseUnchanged: { margin: 3, minSize: 6 } };
  const parent = root.querySelector("div") as HTMLDivElement;
  let views: EditorView[];
  let shown: { destroy(): void };
  let right: EditorView;
  if (options.sides) {
    const merge = new MergeView({
      a: { doc: options.before, extensions: [common, numbered(options.numbers?.before), EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ "aria-label": options.label.before })] },
      b: { doc: options.after, extensions: own },
      parent, root, ...collapse, gutter: true, highlightChanges: true,
      ...(options.editable ? { revertControls: "a-to-b" as const } : {}),
    });
    views = [merge.a, merge.b];
    right = merge.b;
    shown = merge;
  } else {
    right = new EditorView({
      doc: options.after, parent, root,
      extensions: [own, unifiedMergeView({ original: options.before, ...collapse, mergeControls: options.editable ? hunkButton(options.label) : false, gutter: true, highlightChanges: true })],
    });
    views = [right];
    shown = right;
  }
  const found = LanguageDescription.matchFilename(languages, options.path.split("/").pop() ?? "");
  if (found !== null) {
    void found.load().then((support) => {
      for (const view of views) view.dispatch({ effects: language.reconfigure(support) });
    }).catch(() => undefined);
  }
  return { get text() { return right.state.doc.toString(); }, destroy: () => shown.destroy() };
}
