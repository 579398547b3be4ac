import { expect, it } from "vitest";
import { linesOf } from "../../src/server/files.ts";

it.each([
  [[3, 0, 3, 0], null],
  [
    [3, 0, 3, 4],
    [3, 3],
  ],
  [
    [3, 2, 5, 0],
    [3, 4],
  ],
  [
    [3, 2, 5, 1],
    [3, 5],
  ],
  [
    [3, 2, 4, 0],
    [3, 3],
  ],
] as const)("a selection %j has the lines %j", (selection, lines) => {
  expect(linesOf([...selection])).toEqual(lines);
});
