// Where lines of an editor are.

import { type BlockInfo, BlockType, type EditorView } from "@codemirror/view";

/** Return the part of a block that is its line of text. */
export function textOf(block: BlockInfo): BlockInfo {
  const parts = Array.isArray(block.type) ? (block.type as readonly BlockInfo[]) : [];
  return parts.find((one) => one.type === BlockType.Text) ?? block;
}

/** Return the line of text as a block; lines count from 0. */
export function lineBlock(view: EditorView, line: number): BlockInfo {
  return textOf(view.lineBlockAt(view.state.doc.line(line + 1).from));
}
