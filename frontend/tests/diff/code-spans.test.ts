import fc from "fast-check";
import { expect, it } from "vitest";
import { piecesOf } from "../../src/diff/code-spans.ts";

it("a line is whole in its pieces, whatever its colours and its mark are", () => {
  const span = fc.record({ from: fc.nat(30), to: fc.nat(30), name: fc.constantFrom("key", "str") });
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), fc.array(span), fc.nat(30), fc.nat(30), (text, spans, from, to) => {
      const pieces = piecesOf(text, spans, [[from, to]]).map((piece) => piece.text);
      expect(pieces.join("")).toBe(text);
      expect(pieces).not.toContain("");
    }),
  );
});

it("pieces have the colour that is given for them, and the mark", () => {
  expect(piecesOf("let x = 1", [{ from: 0, to: 3, name: "key" }], [[2, 5]])).toEqual([
    { text: "le", name: "key", isMarked: false },
    { text: "t", name: "key", isMarked: true },
    { text: " x", name: "", isMarked: true },
    { text: " = 1", name: "", isMarked: false },
  ]);
});
