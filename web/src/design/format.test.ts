import { describe, expect, it } from "vitest";

import { formatAge, formatBytes, formatDuration, formatMoney, formatRelative, formatTokens, tickFor } from "./format";

describe("formatDuration", () => {
  it.each([
    [0.25, "250 ms"],
    [1.26, "1.2 s"],
    [12.9, "12 s"],
    [61, "1 min"],
    [3600, "1 h"],
    [4800, "1 h 20 min"],
    [200_000, "2 d"],
    [-3, "0 ms"],
  ])("%d s is %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});

describe("formatRelative", () => {
  const now = new Date("2026-11-19T12:00:00Z");
  it.each([
    ["2026-11-19T11:59:58Z", "just now"],
    ["2026-11-19T11:57:00Z", "3 min ago"],
    ["2026-11-19T14:00:00Z", "in 2 h"],
    ["2026-11-17T11:00:00Z", "2 d ago"],
  ])("%s is %s", (time, text) => {
    expect(formatRelative(new Date(time), now)).toBe(text);
  });
});

describe("tickFor", () => {
  it("never makes a time look newer than a moment ago", () => {
    const created = 17_300;
    const ages = Array.from({ length: 300 }, (_, second) => {
      const now = created + second * 1000;
      const tick = tickFor(now - created);
      return (Math.floor(now / tick) * tick - created) / 1000;
    });
    const isMinute = ages.map((age) => formatAge(age).endsWith("min"));
    expect(isMinute).toEqual([...isMinute].sort((one, other) => Number(one) - Number(other)));
  });
});

describe("formatTokens", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [1000, "1k"],
    [12_345, "12.3k"],
    [999_999, "999k"],
    [4_120_000, "4.1M"],
    [2_000_000_000, "2B"],
  ])("%d is %s", (count, text) => {
    expect(formatTokens(count)).toBe(text);
  });
});

describe("formatMoney", () => {
  it.each([
    [null, "–"],
    [0, "$0.00"],
    [420_000, "$0.42"],
    [3100, "$0.0031"],
    [12, "< $0.0001"],
    [1_204_500_000, "$1,204.50"],
  ])("%d microdollars are %s", (amount, text) => {
    expect(formatMoney(amount)).toBe(text);
  });
});

it("formats ages with one unit and sizes with two digits", () => {
  expect([formatAge(59), formatAge(3599), formatAge(90_000)]).toEqual(["59 s", "59 min", "1 d"]);
  expect([formatBytes(1023), formatBytes(1536), formatBytes(11_534_336)]).toEqual(["1023 B", "1.5 KB", "11 MB"]);
});
