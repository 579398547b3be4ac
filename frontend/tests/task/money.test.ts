import { expect, it } from "vitest";
import { shownCost } from "../../src/task/money.ts";

it.each([
  [0, "USD", "$0.00"],
  [0.00001, "USD", "<$0.0001"],
  [0.0123, "USD", "$0.0123"],
  [0.5, "USD", "$0.50"],
  [0.99996, "USD", "$1.00"],
  [1234.5, "USD", "$1,234.50"],
  [0.42, "CHF", "0.42 CHF"],
  [0.001, "CHF", "<0.01 CHF"],
  [undefined, "USD", ""],
  ["1", "USD", ""],
  [1, undefined, ""],
])("%j %s is shown as %j", (amount, currency, shown) => {
  expect(shownCost(amount, currency)).toBe(shown);
});
