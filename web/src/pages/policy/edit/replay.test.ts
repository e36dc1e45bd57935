import { describe, expect, it } from "vitest";

import type { ChangedCall, ReplayPage } from "@/api/queries/policy";

import { describeDoubts, startOf, sumPages } from "./replay";

function page(change: Partial<ReplayPage>): ReplayPage {
  return {
    type: "policy_replay",
    calls: 0,
    gone: 0,
    depend_on_links: 0,
    depend_on_hooks: 0,
    outcomes: {},
    oldest_at: null,
    data: [],
    next_page: null,
    ...change,
  };
}

describe("sumPages", () => {
  it("adds up the pages, with the strictest change first", () => {
    const call = { event_id: "sevt_1" } as ChangedCall;
    const found = sumPages([
      page({
        calls: 10,
        outcomes: { allow: { allow: 6, ask: 3, deny: 0 }, deny: { allow: 1 } },
        oldest_at: "2026-11-02T00:00:00Z",
        data: [call],
        depend_on_links: 2,
      }),
      page({
        calls: 5,
        gone: 1,
        outcomes: { allow: { allow: 3, ask: 1, deny: 1 } },
        oldest_at: "2026-11-01T00:00:00Z",
      }),
      page({ oldest_at: null }),
    ]);
    expect(found.transitions).toEqual([
      { was: "allow", would: "deny", count: 1 },
      { was: "allow", would: "ask", count: 4 },
      { was: "deny", would: "allow", count: 1 },
    ]);
    expect([found.calls, found.unchanged, found.gone]).toEqual([15, 9, 1]);
    expect([found.oldestAt, found.changed]).toEqual(["2026-11-01T00:00:00Z", [call]]);
    expect(describeDoubts(found)).toEqual([
      "2 calls depend on symbolic links",
      "1 call was not evaluated, because its input is deleted or archived",
    ]);
  });
});

describe("startOf", () => {
  it("is a number of days ago, or none", () => {
    const now = new Date("2026-11-19T10:00:00Z");
    expect(startOf("7d", now)).toBe("2026-11-12T10:00:00.000Z");
    expect(startOf("all", now)).toBeUndefined();
  });
});
