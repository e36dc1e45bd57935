import { describe, expect, it } from "vitest";

import { boundsOf, countDays, isDay, isPossible, presetPeriod, previousPeriod, splitPeriod } from "./period";

describe("presetPeriod and previousPeriod", () => {
  it.each([
    ["7d", "2026-11-19", "2026-11-13", "2026-11-06", "2026-11-12"],
    ["30d", "2026-11-19", "2026-10-21", "2026-09-21", "2026-10-20"],
    ["month", "2026-11-19", "2026-11-01", "2026-10-01", "2026-10-19"],
    ["month", "2027-03-31", "2027-03-01", "2027-02-01", "2027-02-28"],
    ["month", "2027-01-01", "2027-01-01", "2026-12-01", "2026-12-01"],
  ] as const)("%s on %s starts on %s and is compared with %s to %s", (preset, today, from, beforeFrom, beforeTo) => {
    const period = presetPeriod(preset, today);
    expect(period).toEqual({ from, to: today });
    expect(previousPeriod(period, preset)).toEqual({ from: beforeFrom, to: beforeTo });
  });

  it("compares chosen days with as many before them", () => {
    const period = { from: "2028-02-28", to: "2028-03-01" };
    expect(countDays(period)).toBe(3);
    expect(previousPeriod(period, null)).toEqual({ from: "2028-02-25", to: "2028-02-27" });
  });
});

it.each([
  ["2026-11-19", true],
  ["2026-02-29", false],
  ["2028-02-29", true],
  ["2026-13-01", false],
  ["19.11.2026", false],
  ["", false],
])("whether %s is a day: %s", (text, expected) => {
  expect(isDay(text)).toBe(expected);
});

it("accepts a year, and neither more days nor the wrong order", () => {
  expect(isPossible({ from: "2028-01-01", to: "2028-12-31" })).toBe(true);
  expect(isPossible({ from: "2027-12-31", to: "2028-12-31" })).toBe(false);
  expect(isPossible({ from: "2028-01-02", to: "2028-01-01" })).toBe(false);
});

it("asks the server for whole days, without the end", () => {
  expect(boundsOf({ from: "2026-11-30", to: "2026-11-30" })).toEqual({
    from: "2026-11-30T00:00:00Z",
    to: "2026-12-01T00:00:00Z",
  });
});

it("divides a period without a gap or an overlap", () => {
  expect(splitPeriod({ from: "2026-11-01", to: "2026-11-05" }, 2)).toEqual([
    { from: "2026-11-01", to: "2026-11-02" },
    { from: "2026-11-03", to: "2026-11-04" },
    { from: "2026-11-05", to: "2026-11-05" },
  ]);
});
