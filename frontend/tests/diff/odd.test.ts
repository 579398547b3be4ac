import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lineHunks, splitLines } from "../../src/diff/line-diff.ts";
import { oddIn } from "../../src/diff/odd.ts";

const odd = (before: string | undefined, after: string) =>
  oddIn(before, after, lineHunks(splitLines(before ?? ""), splitLines(after)));

const LOCK = '"a": "https://registry.example/a-1.tgz",\n"b": "https://registry.example/b-1.tgz",\n';

describe("another host", () => {
  it("is one that the text did not name before", () => {
    expect(odd(LOCK, LOCK.replace("registry.example/b-1", "npm.tidemirror.example/b-2"))).toEqual([
      { is: "host", line: 2, hunk: 0, host: "npm.tidemirror.example", before: ["registry.example"] },
    ]);
    expect(odd(LOCK, LOCK.replace("b-1", "b-2"))).toEqual([]);
  });

  it("is not the first one of a text", () => {
    expect(odd("a = 1\n", "a = 1\nb = 'https://one.example'\n")).toEqual([]);
    expect(odd(undefined, LOCK)).toEqual([]);
  });

  it.each([
    ["https://registry.example@evil.example/x", "evil.example"],
    ["https://evil.example\\@registry.example/x", "evil.example"],
    ["https://registry.example:x@evil.example:8443/x", "evil.example"],
    ["git+ssh://git@EVIL.example./x", "evil.example"],
    ["https://registry.example.evil.example", "registry.example.evil.example"],
  ])("is found in %s", (address, host) => {
    expect(odd(LOCK, `${LOCK}${address}\n`)).toMatchObject([{ is: "host", host }]);
  });

  it("is told for the first five", () => {
    const many = Array.from({ length: 99 }, (_, at) => `https://h${at}.example/\n`).join("");
    expect(odd(LOCK, LOCK + many)).toHaveLength(5);
  });
});

it("a new script is told by its first line", () => {
  expect(odd(undefined, "#!/bin/sh\nrm x\n")).toEqual([{ is: "script", line: 1, hunk: 0, program: "/bin/sh" }]);
  expect(odd("echo\n", "#! /usr/bin/env python3\necho\n")).toMatchObject([{ program: "/usr/bin/env python3" }]);
  expect(odd("#!/bin/sh\n", "#!/bin/bash\n")).toEqual([]);
});

describe("a character that does not show", () => {
  it.each(["\u202e", "\u200b", "\u00ad", "\u{e0041}", "\u00a0"])("is told with its line (%j)", (hidden) => {
    expect(odd("a\nb\nc\n", `a\nb${hidden}\nc\n`)).toEqual([{ is: "hidden", line: 2, hunk: 0, count: 1 }]);
  });

  it("is not told where it was before", () => {
    expect(odd("a\u200b = 1\n", "a\u200b = 2\n")).toEqual([]);
  });
});

it("nothing is odd in a change of plain lines", () => {
  const lines = fc.array(fc.constantFrom("a = 1\n", "b\n", "\tif x:\r\n", "\n", "# https://one.example/x\n"));
  fc.assert(
    fc.property(lines, lines, (old, now) => {
      expect(odd(["# https://one.example\n", ...old].join(""), ["b\n", ...now].join(""))).toEqual([]);
    }),
  );
});
