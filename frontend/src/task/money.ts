// Amounts of money as text, in the form of the terminal.

/** Return an amount with its currency: "$0.0123", "$1,234.50", "0.42 CHF"; empty if it is not known. */
export function shownCost(amount: unknown, currency: unknown): string {
  if (typeof amount !== "number" || typeof currency !== "string") return "";
  if (currency !== "USD") return `${amount > 0 && amount < 0.01 ? "<0.01" : amount.toFixed(2)} ${currency}`;
  if (amount > 0 && amount < 0.0001) return "<$0.0001";
  const small = amount.toFixed(4);
  if (Number(small) < 1) return `$${small.replace(/0{1,2}$/, "")}`;
  return `$${amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}
