// @vitest-environment happy-dom
import { render } from "lit";
import { expect, it } from "vitest";
import { codeText } from "../../src/parts/code-text.ts";

it("a text has what stands between backticks as code, which is not translated", () => {
  const place = document.createElement("p");
  render(codeText("Run `a --b` or `c`."), place);
  expect(place.textContent).toBe("Run a --b or c.");
  const codes = [...place.querySelectorAll("code")];
  expect(codes.map((code) => [code.textContent, code.getAttribute("translate")])).toEqual([
    ["a --b", "no"],
    ["c", "no"],
  ]);
});
