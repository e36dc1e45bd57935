import { describe, expect, it } from "vitest";

import type { Member } from "@/api/queries/people";

import { countMembers, isChanged, memberNames, teamChange } from "./model";

describe("teamChange", () => {
  it("adds and removes only what differs", () => {
    expect(teamChange(["a", "b"], ["b", "c"])).toEqual({ add: ["c"], remove: ["a"] });
    expect(isChanged(teamChange(["a", "b"], ["b", "a"]))).toBe(false);
    expect(isChanged(teamChange([], ["a"]))).toBe(true);
  });
});

describe("memberNames", () => {
  it("sorts names, and marks members that are disabled or unknown", () => {
    const members = [
      { id: "1", name: "Zoe", disabled_at: null },
      { id: "2", name: "Ann", disabled_at: "2026-01-01T00:00:00Z" },
    ] as Member[];
    expect(memberNames({ member_ids: ["1", "2", "memb_3"] }, members)).toEqual(["Ann (disabled)", "memb_3", "Zoe"]);
  });
});

describe("countMembers", () => {
  it.each([
    [0, "no members"],
    [1, "1 member"],
    [12, "12 members"],
  ])("%i is %s", (count, text) => {
    expect(countMembers(count)).toBe(text);
  });
});
