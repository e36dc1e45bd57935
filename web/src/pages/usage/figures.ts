// The figures of a usage report: rows with their amounts, shares, order and the comparison with the period before.
import type { UsageGrouping, UsageLine } from "@/api/queries/usage";

import { isDay } from "./period";

export const MEASURES = ["cost", "tokens", "turns"] as const;
export type Measure = (typeof MEASURES)[number];
export const GROUPINGS = ["day", "model", "agent", "project", "member"] as const;
export const COLUMNS = ["name", "cost", "input", "output", "turns", "completed"] as const;
export type Column = (typeof COLUMNS)[number];

export interface Figures {
  /** Millionths of a dollar of the turns with a known price. Null: there is no such turn. */
  cost: number | null;
  /** Turns with requests to models whose price is not known. */
  unpricedTurns: number;
  input: number;
  output: number;
  cached: number;
  turns: number;
  /** The share of ended turns that completed. Null: none has ended. */
  completed: number | null;
}

export interface UsageRow extends Figures {
  /** Null: turns without a value of the group, such as those of no project. */
  key: string | null;
  name: string;
}

export const NOTHING: Figures = {
  cost: null,
  unpricedTurns: 0,
  input: 0,
  output: 0,
  cached: 0,
  turns: 0,
  completed: null,
};

export function figuresOf(line: UsageLine): Figures {
  const { usage } = line;
  return {
    cost: usage.cost_microusd ?? null,
    unpricedTurns: line.unpriced_turns,
    input: usage.input_tokens,
    output: usage.output_tokens,
    cached: usage.cache_read_input_tokens,
    turns: line.turns,
    completed: line.success_rate,
  };
}

/** The value of the group that the line is about. */
export function keyOf(line: UsageLine, grouping: UsageGrouping): string | null {
  return line[grouping] ?? null;
}

/** What a chart shows and a share refers to. Null: not known. */
export function amountOf(figures: Figures, measure: Measure): number | null {
  switch (measure) {
    case "cost":
      return figures.cost ?? (figures.unpricedTurns > 0 ? null : 0);
    case "tokens":
      return figures.input + figures.output;
    case "turns":
      return figures.turns;
  }
}

/** From 0 to 1. Null if one of the two is not known, or if there is nothing to share. */
export function shareOf(row: Figures, total: Figures, measure: Measure): number | null {
  const part = amountOf(row, measure);
  const whole = amountOf(total, measure);
  return part === null || whole === null || whole === 0 ? null : Math.min(1, part / whole);
}

/** Days are sorted by their date, other rows by their name. */
function textOf({ key, name }: UsageRow): string | null {
  return key === null ? null : isDay(key) ? key : name;
}

/** What is not known is at the end in both orders. */
export function sortRows<T extends UsageRow>(rows: readonly T[], column: Column, isAscending: boolean): T[] {
  const direction = isAscending ? 1 : -1;
  const valueOf = (row: T): number | string | null =>
    column === "name" ? textOf(row) : column === "cost" ? amountOf(row, "cost") : row[column];
  return [...rows].sort((one, other) => {
    const a = valueOf(one);
    const b = valueOf(other);
    if (a === null || b === null) {
      return Number(a === null) - Number(b === null);
    }
    const order = typeof a === "string" ? a.localeCompare(String(b)) : a - Number(b);
    return order * direction || one.name.localeCompare(other.name);
  });
}

/** `+12%`, `−40%`, `no change`. Null if the two cannot be compared. */
export function describeChange(now: number | null, before: number | null): string | null {
  if (now === null || before === null || before === 0) {
    return null;
  }
  const percent = Math.round((now / before - 1) * 100);
  if (percent === 0) {
    return now === before ? "no change" : "about the same";
  }
  return `${percent > 0 ? "+" : "−"}${Math.abs(percent).toLocaleString("en-US")}%`;
}

export function formatShare(share: number): string {
  const percent = share * 100;
  return percent > 0 && percent < 1 ? "< 1%" : `${Math.round(percent)}%`;
}
