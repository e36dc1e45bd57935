import { describe, expect, it } from "vitest";

import { countHidden, snoozeChoices, suggestRule } from "./describe";

type Approval = Parameters<typeof suggestRule>[0];

function approval(fields: Partial<Approval>): Approval {
  return { name: "bash", mcp_server_name: null, input: {}, permission: null, ...fields } as Approval;
}

describe("suggestRule", () => {
  it.each<[string, Partial<Approval>, string | null]>([
    ["the exact command", { input: { command: "npm test" } }, "Bash(npm test)"],
    ["nothing with a wildcard", { input: { command: "rm *" } }, null],
    ["nothing with a hidden character", { input: { command: "rm \u202ea" } }, null],
    ["nothing with a second line", { input: { command: "ls\nrm a" } }, null],
    ["the tool", { name: "edit" }, "Edit"],
    ["the tool of a server", { name: "search", mcp_server_name: "docs" }, "mcp__docs__search"],
    ["nothing against a rule", { name: "edit", permission: { rule: "Edit" } }, null],
    ["nothing against a hook", { name: "edit", permission: { hook: "audit" } }, null],
  ])("suggests %s", (_, fields, rule) => {
    expect(suggestRule(approval(fields))).toBe(rule);
  });
});

it("counts hidden characters at any depth, in names too", () => {
  expect(countHidden({ "a\u200b": ["\u202e", { b: "c\u0000" }], d: 1, e: null })).toBe(3);
});

it.each([0, 1, 2, 3, 4, 5, 6])("snoozes until a Monday that is ahead, on weekday %i", (weekday) => {
  const now = new Date(2026, 10, 15 + weekday, 10, 30);
  const monday = snoozeChoices(now)[3]?.until;
  expect([monday?.getDay(), monday !== undefined && monday > now]).toEqual([1, true]);
});
