// How editors of diffs and texts look.

import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { CODE_TAGS } from "./code-tags.ts";
import { DEEPEST } from "./line-marks.ts";

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
  ".cm-specialChar": { color: "var(--danger)" },
});

/** What is drawn across the numbers and signs, too. */
const WIDE = { marginLeft: "calc(-1 * var(--gutter))", position: "relative" } as const;
const BAR = { content: '""', position: "absolute", left: "0", top: "0", bottom: "0", width: "3px" } as const;
const DASHED = "repeating-linear-gradient(var(--del-bar) 0 4px, transparent 4px 7px)";
const ADDED = {
  background: "var(--add-word)",
  borderRadius: "2px",
  boxShadow: "inset 0 -1.5px var(--add-bar)",
} as const;
const REMOVED = {
  color: "inherit",
  borderRadius: "2px",
  boxShadow: "none",
  background:
    "repeating-linear-gradient(90deg, var(--del-bar) 0 3px, transparent 3px 5px) bottom / 100% 1.5px no-repeat, var(--del-word)",
} as const;
const GROUNDS = { added: "var(--add-bg)", removed: "var(--del-bg)", mine: "var(--mine-bg)" } as const;
const SIGN = { added: "var(--add)", removed: "var(--del)", mine: "var(--mine)" } as const;
const BARS = {
  added: { background: "var(--add-bar)" },
  removed: { background: DASHED },
  mine: { width: "6px", borderInline: "2px solid var(--mine)" },
  kept: { background: "var(--control)" },
} as const;

/** Long lines hang by their own indentation and two more. */
const HANGING = Object.fromEntries(
  Array.from({ length: DEEPEST + 1 }, (_, depth) => [
    `.cm-in${depth}`,
    { paddingLeft: `${depth + 2}ch !important`, textIndent: `-${depth + 2}ch` },
  ]),
);

export const DIFF_THEME = EditorView.theme({
  "&": { "--gutter": "calc(var(--number) + var(--sign))" },
  "&.cm-both": { "--gutter": "calc(var(--lead) + 2 * var(--number) + var(--sign))" },
  ".cm-content": { padding: "0" },
  ".cm-line": { padding: "0 12px 0 0", position: "relative" },
  ".cm-content ::selection, .cm-content::selection": {
    backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)",
  },
  ".cm-gutters": { backgroundColor: "transparent", zIndex: "auto" },
  ".cm-gutter .cm-gutterElement": {
    fontSize: "12px",
    padding: "0 8px 0 0",
    textAlign: "right",
    minWidth: "0",
    position: "relative",
    fontVariantNumeric: "tabular-nums",
  },
  ".cm-lineNumbers, .cm-oldNumbers": { width: "var(--number)" },
  "&.cm-both .cm-oldNumbers": { width: "calc(var(--lead) + var(--number))" },
  ".cm-signs": { width: "var(--sign)" },
  ".cm-gutter.cm-signs .cm-gutterElement": {
    fontSize: "inherit",
    fontWeight: "500",
    textAlign: "center",
    padding: "0",
  },
  ...Object.fromEntries(
    (["added", "removed", "mine"] as const).flatMap((kind) => [
      [`.cm-line.cm-${kind}, .cm-filler.cm-row.cm-${kind}`, { backgroundColor: GROUNDS[kind] }],
      [`.cm-gutter .cm-g-${kind}`, { backgroundColor: GROUNDS[kind], color: SIGN[kind] }],
    ]),
  ),
  ...Object.fromEntries(
    (["added", "removed", "mine", "kept"] as const).map((kind) => [
      `.cm-gutter:first-child .cm-g-${kind}::before`,
      { ...BAR, ...BARS[kind] },
    ]),
  ),
  // Said to screen readers, and not drawn.
  ".cm-line[data-said]::before": {
    content: "attr(data-said)",
    position: "absolute",
    width: "1px",
    height: "1px",
    overflow: "hidden",
    clipPath: "inset(50%)",
  },
  // It floats, so that a long line goes around it.
  ".cm-line[data-end]::before": {
    content: "attr(data-end)",
    float: "right",
    marginLeft: "12px",
    font: "var(--t-xs) var(--font-ui)",
    lineHeight: "20px",
    textIndent: "0",
    color: "var(--text-3)",
  },
  ".cm-changedText": ADDED,
  "&.cm-merge-a .cm-changedText": REMOVED,
  ".cm-deletedChunk": WIDE,
  ".cm-deletedBlock:not(:only-child)": { contentVisibility: "auto", containIntrinsicSize: "auto 1000px" },
  ".cm-deletedLine": {
    display: "grid",
    gridTemplateColumns: "calc(var(--lead) + var(--number)) var(--number) var(--sign) minmax(0, 1fr)",
    position: "relative",
    backgroundColor: "var(--del-bg)",
  },
  ".cm-deletedLine::before": { ...BAR, background: DASHED },
  ".cm-deletedLine .number": {
    fontSize: "12px",
    textAlign: "right",
    paddingRight: "8px",
    color: "var(--del)",
    userSelect: "none",
    fontVariantNumeric: "tabular-nums",
  },
  ".cm-deletedLine .sign": { textAlign: "center", color: "var(--del)", fontWeight: "500", userSelect: "none" },
  ".cm-deletedLine .text": {
    whiteSpace: "pre-wrap",
    overflowWrap: "anywhere",
    paddingRight: "12px",
    minWidth: "0",
    minHeight: "20px",
  },
  ".cm-deletedLine .cm-said": {
    position: "absolute",
    width: "1px",
    height: "1px",
    overflow: "hidden",
    clipPath: "inset(50%)",
  },
  ".cm-deletedLine mark": REMOVED,
  ...Object.fromEntries(
    CODE_TAGS.map(({ name }) => [
      `.cm-deletedLine .c-${name}`,
      { color: `var(--c-${name})`, ...(name === "com" ? { fontStyle: "italic" } : {}) },
    ]),
  ),
  ".cm-hunk, .cm-fold": {
    ...WIDE,
    display: "flex",
    alignItems: "center",
    gap: "8px",
    minHeight: "32px",
    padding: "0 12px 0 var(--inset, 32px)",
    background: "var(--bg)",
    color: "var(--text-3)",
    font: "var(--t-xs) var(--font-ui)",
    whiteSpace: "normal",
  },
  ".cm-fold": { borderBlock: "1px solid var(--line)", minHeight: "28px", boxSizing: "border-box" },
  "&.cm-merge-a .cm-fold, &.cm-merge-b .cm-fold": { height: "28px", padding: "0 0 0 52px" },
  ".cm-hunk code": {
    font: "12px/16px var(--font-code)",
    color: "var(--text-2)",
    overflow: "hidden",
    textOverflow: "ellipsis",
  },
  ".cm-hunk .lines, .cm-hunk .of": { flex: "none" },
  ".cm-hunkState": {
    marginLeft: "auto",
    overflow: "hidden",
    textOverflow: "ellipsis",
    whiteSpace: "nowrap",
    color: "var(--text-2)",
  },
  ".cm-unfold": {
    border: "0",
    padding: "0 2px",
    minHeight: "26px",
    background: "none",
    color: "inherit",
    font: "inherit",
    cursor: "pointer",
    whiteSpace: "nowrap",
  },
  ".cm-hunk .cm-unfold": {
    textDecoration: "underline",
    textUnderlineOffset: "2px",
    textDecorationColor: "var(--line-2)",
  },
  ".cm-fold .cm-unfold": { flex: "1", textAlign: "start", alignSelf: "stretch" },
  ".cm-unfold:hover": { color: "var(--text)" },
  ".cm-filler": WIDE,
  ".cm-filler.cm-void": {
    background: "repeating-linear-gradient(135deg, var(--void) 0 6px, var(--void-2) 6px 7px)",
  },
  "&.cm-merge-a .cm-filler.cm-row": { backgroundColor: "var(--del-bg)" },
  "&.cm-merge-b .cm-filler.cm-row": { backgroundColor: "var(--add-bg)" },
  "&.cm-merge-a .cm-filler.cm-row::before": { ...BAR, background: DASHED },
  "&.cm-merge-b .cm-filler.cm-row::before": { ...BAR, background: "var(--add-bar)" },
  // The distance is padding of the widget: the editor does not see margins.
  ".cm-comment": { padding: "8px 16px 8px 0", whiteSpace: "normal" },
  ".cm-comment > div": {
    padding: "10px 12px",
    border: "1px solid var(--line-2)",
    borderRadius: "10px",
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
  ".cm-comment button": {
    font: "500 12px/18px var(--font-ui)",
    border: "1px solid var(--line-2)",
    borderRadius: "6px",
    background: "var(--raised)",
    color: "var(--text)",
    padding: "3px 10px",
    cursor: "pointer",
    flex: "none",
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
  ".cm-comment textarea:focus-visible, .cm-unfold:focus-visible, .cm-comment button:focus-visible": {
    outline: "2px solid var(--focus)",
    outlineOffset: "1px",
  },
  ".cm-line.cm-chosenLine, .cm-deletedLine.cm-chosenLine": { outline: "1px solid var(--focus)", outlineOffset: "-1px" },
  ".cm-heading, .cm-heading *": { color: "var(--text-3) !important", backgroundColor: "var(--bg)" },
  ...HANGING,
});
