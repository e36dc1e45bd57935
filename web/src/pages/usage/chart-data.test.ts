import { expect, it } from "vitest";

import type { UsageLine } from "@/api/queries/usage";

import { buildChart, largestKeys } from "./chart-data";
import { NOTHING, type UsageRow } from "./figures";

function line(day: string, model: string | null, cost: number | null, unpriced = 0): UsageLine {
  return {
    type: "usage",
    day,
    ...(model === null ? {} : { model }),
    turns: 1,
    statuses: {},
    success_rate: 1,
    iterations: 1,
    seconds: 1,
    average_seconds: 1,
    unpriced_turns: unpriced,
    usage: {
      input_tokens: 0,
      output_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: {},
      requests: 1,
      cost_microusd: cost,
    },
  };
}

function row(name: string, cost: number | null): UsageRow {
  return { ...NOTHING, key: name, name, cost, unpricedTurns: cost === null ? 1 : 0 };
}

const DAYS = { from: "2026-11-18", to: "2026-11-19" };
const ROWS = [row("a", 5), row("b", 9), row("c", 1), row("d", 2), row("e", 3), row("f", 4), row("free", null)];

it("gives the largest groups a series each, and the rest one", () => {
  const keys = largestKeys(ROWS, "cost");
  expect(keys).toEqual(["b", "a", "f", "e", "d"]);
  const chart = buildChart({
    period: DAYS,
    measure: "cost",
    grouping: "model",
    rows: ROWS,
    keys,
    days: [line("2026-11-18", null, 10, 1), line("2026-11-19", null, 14)],
    parts: [line("2026-11-18", "a", 5), line("2026-11-18", "b", 4), line("2026-11-19", "b", 5)],
  });
  expect(chart.series).toEqual(["b", "a", "f", "e", "d", "c"]);
  expect(chart.points.map((point) => point.values)).toEqual([
    [4, 5, 0, 0, 0, 1],
    [5, 0, 0, 0, 0, 9],
  ]);
  expect(chart.points.map((point) => point.unpricedTurns)).toEqual([1, 0]);
});

it("has no rest if all groups have a series, or if the others have no known amount", () => {
  const rows = [row("a", 5), row("free", null)];
  const chart = buildChart({
    period: DAYS,
    measure: "cost",
    grouping: "model",
    rows,
    keys: largestKeys(rows, "cost"),
    days: [line("2026-11-18", null, 5)],
    parts: [line("2026-11-18", "a", 5)],
  });
  expect([chart.series, chart.hasRest]).toEqual([["a"], false]);
  expect(chart.points.map((point) => point.values)).toEqual([[5], [0]]);
});

it("puts what belongs to no project into the rest, by its name", () => {
  const rows = [row("site", 5), { ...row("No project", 3), key: null }];
  const chart = buildChart({
    period: DAYS,
    measure: "cost",
    grouping: "project",
    rows,
    keys: ["site"],
    days: [line("2026-11-18", null, 8)],
    parts: [{ ...line("2026-11-18", null, 5), project: "site" }],
  });
  expect(chart.series).toEqual(["site", "No project"]);
  expect(chart.points[0]?.values).toEqual([5, 3]);
});

it("totals long periods by week, and the last week ends with the period", () => {
  const period = { from: "2026-01-01", to: "2026-04-10" };
  const chart = buildChart({
    period,
    measure: "turns",
    grouping: "day",
    rows: [],
    keys: [],
    days: [line("2026-01-01", null, 1), line("2026-01-07", null, 1), line("2026-01-08", null, 1)],
    parts: [],
  });
  expect(chart.isWeekly).toBe(true);
  expect(chart.points.slice(0, 2).map((point) => point.values)).toEqual([[2], [1]]);
  expect(chart.points.at(-1)).toMatchObject({ from: "2026-04-09", to: "2026-04-10" });
});
