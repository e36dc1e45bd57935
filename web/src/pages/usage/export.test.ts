import { expect, it } from "vitest";

import { toCommand, toCsv } from "./export";
import { NOTHING, type UsageRow } from "./figures";

function row(fields: Partial<UsageRow>): UsageRow {
  return { ...NOTHING, key: "agent_1", name: "engineer", turns: 1, ...fields };
}

it("writes an unknown cost as an empty field, and quotes names", () => {
  const csv = toCsv(
    [
      row({ cost: 1_250_000, input: 10, output: 2, cached: 3, completed: 0.5 }),
      row({ name: 'the "best", really', unpricedTurns: 1 }),
    ],
    "agent",
  );
  expect(csv.split("\r\n")).toEqual([
    "agent,name,cost_usd,unpriced_turns,input_tokens,output_tokens,cache_read_tokens,turns,success_rate",
    "agent_1,engineer,1.25,0,10,2,3,1,0.5",
    'agent_1,"the ""best"", really",,1,0,0,0,1,',
    "",
  ]);
});

it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])("a name such as %s is no formula in a spreadsheet", (name) => {
  expect(toCsv([row({ name })], "agent")).toContain(`,'${name}`);
});

it("ends the command after the last day", () => {
  expect(toCommand({ from: "2026-11-01", to: "2026-11-30" }, "model")).toBe(
    "footplate usage --by model --since 2026-11-01 --until 2026-12-01",
  );
});
