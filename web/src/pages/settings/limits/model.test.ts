import { describe, expect, it } from "vitest";

import type { Limit } from "@/api/queries/people";

import {
  describeRemoval,
  describeScope,
  describeSetter,
  formatAmount,
  limitId,
  limitSchema,
  limitValues,
  splitBytes,
  toLimitFields,
  usedShare,
} from "./model";

const LIMIT: Limit = {
  type: "limit",
  name: "sessions",
  scope: "organisation",
  member_id: null,
  member_name: null,
  value: 10,
  used: 3,
  own_value: 10,
  operator_value: null,
};
const OF_ANN: Limit = { ...LIMIT, scope: "member", member_id: "memb_1", member_name: "Ann" };

function problemsOf(changes: Partial<ReturnType<typeof limitValues>>): string[] {
  const result = limitSchema.safeParse({ ...limitValues(LIMIT), ...changes });
  return result.success ? [] : result.error.issues.map((issue) => issue.path.join("."));
}

describe("a limit in words", () => {
  it("names its scope", () => {
    expect(describeScope(LIMIT)).toBe("Organisation");
    expect(describeScope(OF_ANN)).toBe("Ann");
    expect([limitId(LIMIT), limitId(OF_ANN)]).toEqual(["sessions/organisation", "sessions/memb_1"]);
  });

  it("names who has set the value that applies", () => {
    expect(describeSetter(LIMIT)).toBe("organisation");
    expect(describeSetter({ ...LIMIT, value: 5, operator_value: 5 })).toBe("server");
    expect(describeSetter({ ...LIMIT, own_value: null, operator_value: 10 })).toBe("server");
    expect(describeSetter({ ...OF_ANN, own_value: null })).toBe("each member");
    expect(describeSetter({ ...LIMIT, value: null, own_value: null })).toBe("");
  });

  it("formats sizes as sizes", () => {
    expect(formatAmount("stored_bytes", 1.5 * 1024 ** 3)).toBe("1.5 GB");
    expect(formatAmount("requests_per_second", 1200.25)).toBe("1,200.3");
  });
});

describe("usedShare", () => {
  it("is at most 1, and null if there is nothing to compare", () => {
    expect(usedShare({ value: 10, used: 3 })).toBe(0.3);
    expect(usedShare({ value: 10, used: 12 })).toBe(1);
    expect(usedShare({ value: 0, used: 0 })).toBe(1);
    expect(usedShare({ value: null, used: 3 })).toBeNull();
    expect(usedShare({ value: 10, used: null })).toBeNull();
  });
});

describe("describeRemoval", () => {
  it("names the limit that applies afterwards", () => {
    const each: Limit = { ...LIMIT, scope: "each_member", value: 7 };
    expect(describeRemoval(LIMIT, [LIMIT])).toContain("Nothing limits it then");
    expect(describeRemoval({ ...LIMIT, operator_value: 20 }, [])).toContain("operator of the server applies then: 20");
    expect(describeRemoval(OF_ANN, [each])).toContain("each member applies then: 7");
    expect(describeRemoval({ ...OF_ANN, operator_value: 5 }, [each])).toContain(
      "operator of the server applies then: 5",
    );
  });
});

describe("the form", () => {
  it("refuses what the server would refuse", () => {
    expect(problemsOf({})).toEqual([]);
    expect(problemsOf({ amount: "" })).toEqual(["amount"]);
    expect(problemsOf({ amount: "1.5" })).toEqual(["amount"]);
    expect(problemsOf({ amount: "-1" })).toEqual(["amount"]);
    expect(problemsOf({ amount: "99999999999999999999" })).toEqual(["amount"]);
    expect(problemsOf({ name: "requests_per_second", amount: "0" })).toEqual(["amount"]);
    expect(problemsOf({ scope: "member" })).toEqual(["memberId"]);
    expect(problemsOf({ name: "stored_bytes", amount: "1.5", unit: "GB" })).toEqual([]);
  });

  it("sends a member only with its scope, and sizes in bytes", () => {
    expect(toLimitFields({ ...limitValues(OF_ANN), scope: "each_member" }).member_id).toBeNull();
    const stored = { ...limitValues(null), name: "stored_bytes", amount: "1.5", unit: "GB" } as const;
    expect(toLimitFields(stored)).toEqual({
      name: "stored_bytes",
      scope: "organisation",
      member_id: null,
      value: 1.5 * 1024 ** 3,
    });
  });

  it("shows a size in the largest unit that is exact", () => {
    expect(splitBytes(2 * 1024 ** 3)).toEqual({ amount: "2", unit: "GB" });
    expect(splitBytes(500 * 1024 ** 2)).toEqual({ amount: "500", unit: "MB" });
    expect(splitBytes(1001)).toEqual({ amount: "1001", unit: "bytes" });
    expect(limitValues({ ...LIMIT, name: "stored_bytes", own_value: null, value: 1024 ** 3 }).amount).toBe("1");
  });
});
