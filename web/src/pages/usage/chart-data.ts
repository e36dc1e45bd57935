// What the chart shows: an amount for each day or week, divided among the largest groups and the rest.
import type { UsageGrouping, UsageLine } from "@/api/queries/usage";

import { amountOf, figuresOf, keyOf, type Measure, type UsageRow } from "./figures";
import { addDays, countDays, type Period } from "./period";

/** More series than this cannot be distinguished by their colours. */
export const MAX_SERIES = 5;
/** A longer period is shown by weeks. */
const MAX_DAYS = 92;
const WEEK = 7;

export interface ChartPoint {
  from: string;
  /** The last day of the week, or the same day. */
  to: string;
  /** One amount for each series. */
  values: number[];
  /** Turns whose cost is not known, and is not in the amounts. */
  unpricedTurns: number;
}

export interface ChartData {
  /** The names, the largest first, and the rest last. */
  series: string[];
  /** Whether the last series has everything that the others do not have. */
  hasRest: boolean;
  points: ChartPoint[];
  isWeekly: boolean;
}

/** The groups that have a series of their own. */
export function largestKeys(rows: readonly UsageRow[], measure: Measure): string[] {
  return rows
    .filter((row) => row.key !== null && (amountOf(row, measure) ?? 0) > 0)
    .sort((one, other) => (amountOf(other, measure) ?? 0) - (amountOf(one, measure) ?? 0))
    .slice(0, MAX_SERIES)
    .flatMap((row) => row.key ?? []);
}

interface ChartInput {
  period: Period;
  measure: Measure;
  grouping: UsageGrouping;
  rows: readonly UsageRow[];
  /** The keys of the series. */
  keys: readonly string[];
  /** By day. */
  days: readonly UsageLine[];
  /** By day and group, of the keys. */
  parts: readonly UsageLine[];
}

export function buildChart({ period, measure, grouping, rows, keys, days, parts }: ChartInput): ChartData {
  const isWeekly = countDays(period) > MAX_DAYS;
  const step = isWeekly ? WEEK : 1;
  const isDivided = grouping !== "day";
  const others = rows.filter(
    (row) => (row.key === null || !keys.includes(row.key)) && (amountOf(row, measure) ?? 0) > 0,
  );
  const hasRest = isDivided && others.length > 0;
  const series = isDivided
    ? [
        ...keys.map((key) => rows.find((row) => row.key === key)?.name ?? key),
        ...(hasRest ? [others.length === 1 ? (others[0]?.name ?? "") : `${others.length} others`] : []),
      ]
    : [measure];
  const points: ChartPoint[] = [];
  for (let from = period.from; from <= period.to; from = addDays(from, step)) {
    const end = addDays(from, step - 1);
    points.push({
      from,
      to: end < period.to ? end : period.to,
      values: series.map(() => 0),
      unpricedTurns: 0,
    });
  }
  const pointOf = (line: UsageLine): ChartPoint | undefined =>
    points[Math.floor((countDays({ from: period.from, to: line.day ?? "" }) - 1) / step)];
  function add(line: UsageLine, index: number): void {
    const point = pointOf(line);
    if (point !== undefined && index >= 0 && index < point.values.length) {
      point.values[index] = (point.values[index] ?? 0) + (amountOf(figuresOf(line), measure) ?? 0);
    }
  }
  for (const line of days) {
    add(line, isDivided ? (hasRest ? keys.length : -1) : 0);
    const point = pointOf(line);
    if (point !== undefined) {
      point.unpricedTurns += line.unpriced_turns;
    }
  }
  for (const line of isDivided ? parts : []) {
    add(line, keys.indexOf(keyOf(line, grouping) ?? ""));
  }
  if (hasRest) {
    for (const point of points) {
      const known = point.values.slice(0, keys.length).reduce((sum, value) => sum + value, 0);
      // The two reports are not of the same moment.
      point.values[keys.length] = Math.max(0, (point.values[keys.length] ?? 0) - known);
    }
  }
  return { series, hasRest, points, isWeekly };
}
