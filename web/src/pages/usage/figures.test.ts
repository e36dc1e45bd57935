import { describe, expect, it } from "vitest";

import { explainCost, formatCost } from "./amounts";
import { amountOf, describeChange, formatShare, NOTHING, shareOf, sortRows, type UsageRow } from "./figures";

function row(name: string, fields: Partial<UsageRow> = {}): UsageRow {
  return { ...NOTHING, key: name, name, turns: 1, ...fields };
}

const known = row("known", { cost: 2_000_000, input: 10, output: 5 });
const partly = row("partly", { cost: 1_000_000, unpricedTurns: 2 });
const unknown = row("unknown", { unpricedTurns: 1 });
const without = row("without");

describe("a cost that is not known", () => {
  it("is never zero", () => {
    expect([known, partly, unknown, without].map((one) => formatCost(one))).toEqual([
      "$2.00",
      "≥ $1.00",
      "unknown",
      "–",
    ]);
    expect(amountOf(unknown, "cost")).toBeNull();
    expect(amountOf(without, "cost")).toBe(0);
  });

  it("has a reason", () => {
    expect(explainCost(partly)).toBe("The price of 2 turns is not known, and not included.");
    expect(explainCost(unknown)).toBe("The price of the model is not known (1 turn).");
    expect(explainCost(known)).toBeUndefined();
  });

  it("has no share, and is last in both orders", () => {
    expect(shareOf(unknown, known, "cost")).toBeNull();
    expect(shareOf(partly, known, "cost")).toBe(0.5);
    for (const isAscending of [true, false]) {
      expect(sortRows([unknown, known, partly], "cost", isAscending).at(-1)).toBe(unknown);
    }
  });
});

describe("sortRows", () => {
  it("sorts by each kind of column, and equal rows by name", () => {
    const rows = [row("b", { turns: 2 }), row("c", { turns: 9 }), row("a", { turns: 2 })];
    expect(sortRows(rows, "turns", false).map((one) => one.name)).toEqual(["c", "a", "b"]);
    expect(sortRows(rows, "turns", true).map((one) => one.name)).toEqual(["a", "b", "c"]);
    expect(sortRows(rows, "name", false).map((one) => one.name)).toEqual(["c", "b", "a"]);
  });

  it("puts the row without a value last by name", () => {
    const rows = [row("No project", { key: null }), row("zoo")];
    expect(sortRows(rows, "name", true).map((one) => one.name)).toEqual(["zoo", "No project"]);
  });

  it("sorts days by date, not by their text", () => {
    const rows = [row("Friday", { key: "2026-11-20" }), row("Thursday", { key: "2026-11-19" })];
    expect(sortRows(rows, "name", true).map((one) => one.key)).toEqual(["2026-11-19", "2026-11-20"]);
  });
});

it.each([
  [112, 100, "+12%"],
  [60, 100, "−40%"],
  [100, 100, "no change"],
  [1001, 1000, "about the same"],
  [1, 0, null],
  [null, 1, null],
  [1, null, null],
])("from %s after %s is %s", (now, before, text) => {
  expect(describeChange(now, before)).toBe(text);
});

it.each([
  [0, "0%"],
  [0.004, "< 1%"],
  [0.125, "13%"],
  [1, "100%"],
])("%d as a share is %s", (share, text) => {
  expect(formatShare(share)).toBe(text);
});
