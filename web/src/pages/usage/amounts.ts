// Amounts as text: money that may be partly unknown, and tokens.
import { formatMoney, formatTokens } from "@/design/format";

import type { Figures, Measure } from "./figures";

/** `$1.20`; `≥ $1.20` if some turns have no known price; `unknown` if none has one. */
export function formatCost({ cost, unpricedTurns }: Pick<Figures, "cost" | "unpricedTurns">): string {
  if (cost === null) {
    return unpricedTurns > 0 ? "unknown" : "–";
  }
  return unpricedTurns > 0 ? `≥ ${formatMoney(cost)}` : formatMoney(cost);
}

export function explainCost({ cost, unpricedTurns }: Pick<Figures, "cost" | "unpricedTurns">): string | undefined {
  if (unpricedTurns === 0) {
    return cost === null ? "No requests to models" : undefined;
  }
  const turns = unpricedTurns === 1 ? "1 turn" : `${unpricedTurns.toLocaleString("en-US")} turns`;
  return cost === null
    ? `The price of the model is not known (${turns}).`
    : `The price of ${turns} is not known, and not included.`;
}

export const MEASURE_TITLES: Record<Measure, string> = { cost: "Cost", tokens: "Tokens", turns: "Turns" };

export function formatAmount(amount: number, measure: Measure): string {
  switch (measure) {
    case "cost":
      return formatMoney(amount);
    case "tokens":
      return formatTokens(amount);
    case "turns":
      return amount.toLocaleString("en-US");
  }
}

const SMALL_MICROUSD = 100_000;

/** For an axis that ends at `largest`: all its numbers have as many digits. */
export function formatTick(amount: number, largest: number, measure: Measure): string {
  return measure === "cost" && largest < SMALL_MICROUSD && amount > 0
    ? `$${(amount / 1_000_000).toFixed(4)}`
    : formatAmount(amount, measure);
}
