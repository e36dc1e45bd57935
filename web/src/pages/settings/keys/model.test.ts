import { describe, expect, it } from "vitest";

import { ApiError } from "@/api/errors";
import type { ApiKey } from "@/api/queries/people";

import { findField } from "../people/use-form-save";
import { describeRevocation, expiryOf, KEY_FIELDS, keySchema, keyState, newKeyValues, toKeyFields } from "./model";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const KEY = { name: "laptop", member_name: "Ann" } as ApiKey;

function problemsOf(changes: Partial<ReturnType<typeof newKeyValues>>): string[] {
  const result = keySchema.safeParse({ ...newKeyValues(null), name: "ci", ...changes });
  return result.success ? [] : result.error.issues.map((issue) => issue.path.join("."));
}

describe("keyState", () => {
  it("is revoked before it is expired", () => {
    expect(keyState({ revoked_at: null, expires_at: null }, NOW)).toBe("active");
    expect(keyState({ revoked_at: null, expires_at: "2026-03-01T12:00:01Z" }, NOW)).toBe("active");
    expect(keyState({ revoked_at: null, expires_at: "2026-03-01T12:00:00Z" }, NOW)).toBe("expired");
    expect(keyState({ revoked_at: "2026-02-01T00:00:00Z", expires_at: "2026-01-01T00:00:00Z" }, NOW)).toBe("revoked");
  });
});

describe("keySchema", () => {
  it("accepts what the server accepts, and names the field of what it does not", () => {
    expect(problemsOf({})).toEqual([]);
    expect(problemsOf({ name: "  " })).toEqual(["name"]);
    expect(problemsOf({ roles: [] })).toEqual(["roles"]);
    expect(problemsOf({ roles: [], ownRoles: "release_manager" })).toEqual([]);
    expect(problemsOf({ ownRoles: "Boss" })).toEqual(["ownRoles"]);
    expect(problemsOf({ isRestricted: true })).toEqual(["projectIds"]);
    expect(problemsOf({ expires: "date" })).toEqual(["date"]);
    expect(problemsOf({ expires: "date", date: "2020-01-01" })).toEqual(["date"]);
    expect(problemsOf({ expires: "date", date: "9000-12-31" })).toEqual([]);
  });
});

describe("toKeyFields", () => {
  it("counts days from now, and a date to its end", () => {
    expect(expiryOf({ expires: "never", date: "" }, NOW)).toBeNull();
    expect(expiryOf({ expires: "30", date: "" }, NOW)).toBe("2026-03-31T12:00:00.000Z");
    expect(expiryOf({ expires: "date", date: "2026-05-02" }, NOW)).toBe(new Date("2026-05-02T23:59:59").toISOString());
  });

  it("sends projects only if the key is restricted, and each role once", () => {
    const values = { ...newKeyValues("memb_1"), name: " ci ", projectIds: ["proj_1"], ownRoles: "member, qa qa" };
    expect(toKeyFields({ ...values, expires: "never" }, NOW)).toEqual({
      name: "ci",
      member_id: "memb_1",
      roles: ["member", "qa"],
      expires_at: null,
      project_ids: null,
    });
    expect(toKeyFields({ ...values, isRestricted: true }, NOW).project_ids).toEqual(["proj_1"]);
  });
});

describe("KEY_FIELDS", () => {
  it("finds the field of the server's error", () => {
    const refusal = (field: string | null) => new ApiError(400, { error: { message: "no", field } }, null);
    expect(findField(refusal("project_ids.0"), KEY_FIELDS)).toBe("projectIds");
    expect(findField(refusal("expires_at"), KEY_FIELDS)).toBe("date");
    expect(findField(refusal(null), KEY_FIELDS)).toBeNull();
    expect(findField(new Error("offline"), KEY_FIELDS)).toBeNull();
  });
});

describe("describeRevocation", () => {
  it("warns of signing out, and names the owner only if the name differs", () => {
    expect(describeRevocation(KEY, true)).toContain("signs you out");
    expect(describeRevocation(KEY, false)).toContain("this key of Ann stop working");
    expect(describeRevocation({ ...KEY, member_name: "laptop" }, false)).toContain("this key stop working");
  });
});
