// @vitest-environment happy-dom

import fc from "fast-check";
import { render } from "lit";
import { describe, expect, it } from "vitest";
import { markdown, markdownOf } from "../../src/text/markdown.ts";

function drawn(text: string): HTMLElement {
  const place = document.createElement("div");
  render(markdown(text), place);
  return place;
}

const ELEMENTS = new Set(
  "P H2 H3 FIGURE FIGCAPTION PRE CODE BLOCKQUOTE HR UL OL LI SPAN DIV TABLE THEAD TBODY TR TH TD STRONG EM S BR A ISTHMUS-COPY".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(["class", "tabindex", "href", "target", "rel", "start", "aria-hidden", "data-language"]);

/** Fail for an element, an attribute or an address that no text of an agent may have. */
function expectHarmless(place: HTMLElement): void {
  for (const element of place.querySelectorAll("*")) {
    expect(ELEMENTS).toContain(element.tagName);
    for (const { name } of element.attributes) expect(ATTRIBUTES).toContain(name);
    const href = element.getAttribute("href");
    if (href !== null) expect(href).toMatch(/^https?:\/\//i);
    if (element.tagName === "A") expect(element.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  }
}

const VECTORS = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](data:text/html,<script>alert(1)</script>)",
  "[a](vbscript:x)",
  "[a]( javascript:alert(1))",
  "![a](javascript:alert(1))",
  "![a](https://example.org/x.png)",
  "<javascript:alert(1)>",
  "[a]: javascript:alert(1)\n\n[a]",
  '[a](https://example.org/" onmouseover=alert(1))',
  '```"><script>alert(1)</script>\ncode\n```',
  "| a |\n|---|\n| <b onclick=x>y</b> |",
  "<div style=position:fixed>\n\n**x**\n\n</div>",
  "- [x] <iframe src=//example.org>",
  "# <a href=javascript:alert(1)>x</a>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "&#60;script&#62;",
  "\\<script\\>",
  "<!-- --><script>1</script>",
  "[a](//example.org)",
  "[a](/ui/api/pair)",
];

describe("Markdown of an agent", () => {
  it.each(VECTORS)("%j is never HTML, script or an address of another scheme", (text) => {
    expectHarmless(drawn(text));
  });

  it("is harmless in any combination", () => {
    const pieces = fc.constantFrom(
      ...VECTORS,
      "\n",
      "\n\n",
      "> ",
      "- ",
      "1. ",
      "**",
      "`",
      "```\n",
      "| a |\n|---|\n",
      "~~",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 12 }), (parts) => {
        expectHarmless(drawn(parts.join("")));
      }),
    );
  });

  it("shows the address of a link, whatever its words say", () => {
    expect(drawn("[https://good.example](https://bad.example/)").textContent).toContain("(https://bad.example/)");
    expect(drawn("<https://good.example>").textContent).toBe("https://good.example");
    expect(drawn("[a](ftp://x)").innerText).toBe("a (ftp://x)");
  });

  it("shows HTML as the text that it is", () => {
    expect(drawn("<b>bold</b>").textContent?.trim()).toBe("<b>bold</b>");
    expect(drawn("a &lt;b&gt; &amp; c").textContent).toBe("a <b> & c");
  });

  it("hides no character", () => {
    expect(drawn("pay\u202epal").textContent).toBe("pay\\u{202e}pal");
    expect(drawn("```\u200b\ncode\u0000\n```").textContent).toContain("code\u2400");
  });

  it("keeps a code block as it is", () => {
    const code = drawn("```js\nif (a) {\n    b();\n}\n```").querySelector("pre");
    expect(code?.textContent).toBe("if (a) {\n    b();\n}");
    expect(drawn("```js\n```").querySelector("figcaption")?.textContent.trim()).toBe("js");
  });

  it("draws lists, tasks, tables and headings below those of the page", () => {
    const levels = (text: string): string[] =>
      [...drawn(text).querySelectorAll("h1,h2,h3,h4")].map((one) => one.tagName);
    expect(levels("# a\n\n### b\n\n## c")).toEqual(["H2", "H3", "H3"]);
    expect(levels("### a\n\n# b\n\n> #### c")).toEqual(["H2", "H2", "H3"]);
    expect(drawn("3. a\n4. b").querySelector("ol")?.getAttribute("start")).toBe("3");
    expect(drawn("- [x] a\n- [ ] b").textContent?.replace(/\s+/g, " ").trim()).toBe("\u2611 a \u2610 b");
    expect(
      [...drawn("| a | b |\n|---|---|\n| 1 | 2 |").querySelectorAll("td")].map((cell) => cell.textContent),
    ).toEqual(["1", "2"]);
  });

  it.each([
    ["a long line", "x".repeat(5001)],
    ["a long text", "x\n".repeat(25_001)],
  ])("is %s as it is, without being parsed", (_, text) => {
    const place = drawn(`**${text}`);
    expect(place.querySelector("p.plain")?.textContent).toBe(`**${text}`);
  });

  it("is parsed again only if the text is another one", () => {
    const item = {};
    const first = markdownOf(item, "a");
    expect(markdownOf(item, "a")).toBe(first);
    expect(markdownOf(item, "b")).not.toBe(first);
  });
});
