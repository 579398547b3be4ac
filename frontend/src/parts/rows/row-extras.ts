// What rows have beside their content, a chunk of its own that comes behind the first of them: buttons that copy, pictures, colours of code.

import { FenceColours } from "../../diff/fence-colours.ts";
import "../copy-button.ts";
import "./pictures.ts";

/** Colour the blocks of code below an element, from now on; return what ends that. */
export function colourFences(root: HTMLElement): () => void {
  const colours = new FenceColours(root);
  return () => colours.end();
}
