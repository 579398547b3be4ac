// A text that can be read and selected by mouse and keyboard, and not changed: CodeMirror, in a shadow root.
// It shares its chunk with the editor of diffs.

import { defaultKeymap } from "@codemirror/commands";
import { LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { Compartment, EditorSelection, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { COLOURS, THEME } from "../diff/editor/diff-editor.ts";
import type { Selection } from "../server/files.ts";

// The focus is shown around the whole view (file-viewer.ts).
const FULL = EditorView.theme({
  "&": { height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { overflow: "auto" },
});

export interface TextOptions {
  text: string;
  path: string;
  label: string;
  selection: Selection | null;
  onSelect: (selection: Selection) => void;
  onKey: (key: "m" | "x" | "/" | "Escape") => void;
}

export interface TextView {
  focus(): void;
  destroy(): void;
}

/** Show a text in a shadow root, with the selection that it has. */
export function showText(root: ShadowRoot, options: TextOptions): TextView {
  const language = new Compartment();
  const on = (key: "m" | "x" | "/" | "Escape") => ({
    key,
    run: () => {
      options.onKey(key);
      return true;
    },
  });
  // The companion counts only line feeds as ends of lines; CodeMirror counts carriage returns, too.
  const separator = /\r(?!\n)/.test(options.text) ? EditorState.lineSeparator.of("\n") : [];
  const state = EditorState.create({
    doc: options.text,
    extensions: [
      separator,
      lineNumbers(),
      drawSelection(),
      highlightSpecialChars(),
      syntaxHighlighting(COLOURS),
      THEME,
      FULL,
      EditorView.lineWrapping,
      language.of([]),
      EditorState.readOnly.of(true),
      keymap.of([on("m"), on("x"), on("/"), on("Escape"), ...defaultKeymap]),
      // It has a cursor, and so takes the focus; a phone is not to show its keyboard.
      EditorView.contentAttributes.of({
        "aria-label": options.label,
        "aria-readonly": "true",
        inputmode: "none",
        tabindex: "0",
      }),
      EditorView.updateListener.of((update) => {
        if (update.selectionSet) options.onSelect(selectionOf(update.state));
      }),
    ],
  });
  const view = new EditorView({
    state: withSelection(state, options.selection),
    parent: root.querySelector("div") as HTMLDivElement,
    root,
  });
  if (options.selection)
    view.dispatch({ effects: EditorView.scrollIntoView(view.state.selection.main, { y: "center" }) });
  const found = LanguageDescription.matchFilename(languages, options.path.split("/").pop() ?? "");
  found
    ?.load()
    .then((support) => view.dispatch({ effects: language.reconfigure(support) }))
    .catch(() => undefined);
  return { focus: () => view.focus(), destroy: () => view.destroy() };
}

function selectionOf(state: EditorState): Selection {
  const { from, to } = state.selection.main;
  const first = state.doc.lineAt(from);
  const last = state.doc.lineAt(to);
  return [first.number - 1, from - first.from, last.number - 1, to - last.from];
}

/** Return the state with a selection, as far as the text goes. */
function withSelection(state: EditorState, selection: Selection | null): EditorState {
  if (!selection) return state;
  const place = (line: number, character: number): number => {
    if (line >= state.doc.lines) return state.doc.length;
    const found = state.doc.line(line + 1);
    return Math.min(found.to, found.from + character);
  };
  const [line, character, endLine, endCharacter] = selection;
  return state.update({ selection: EditorSelection.single(place(line, character), place(endLine, endCharacter)) })
    .state;
}
