import { describe, expect, it } from "vitest";

import { ApiError } from "@/api/errors";

import {
  type EditedPolicy,
  editorSchema,
  findProblem,
  lineOfRule,
  readRules,
  rebase,
  toPolicy,
  valuesOf,
} from "./model";

const TERMS = { expires_after_seconds: null, outcome: "deny", role: null, two_people: false } as const;
const POLICY: EditedPolicy = {
  permissions: { deny: ["Bash(rm *)"], ask: [], allow: ["Read"], hooks: { Stop: [{ hooks: [] }] } },
  approvals: { ...TERMS, expires_after_seconds: 60, role: "approver" },
};

describe("values of the editor", () => {
  it("are those of the policy, and come back as the same policy", () => {
    expect(toPolicy(valuesOf(POLICY))).toEqual(POLICY);
    const empty: EditedPolicy = { permissions: { deny: [], ask: [], allow: [] }, approvals: TERMS };
    expect(toPolicy(valuesOf(empty))).toEqual(empty);
  });

  it("have one rule per line", () => {
    expect(readRules(" Bash \n\n Read(a b)\n")).toEqual(["Bash", "Read(a b)"]);
    expect(lineOfRule("\nBash\n\nRead", 1)).toBe(4);
    expect(lineOfRule("Bash", 1)).toBeNull();
  });

  it.each([
    [{ hooks: "[]" }, "hooks"],
    [{ hooks: "{" }, "hooks"],
    [{ expires: "0" }, "expires"],
    [{ expires: "soon" }, "expires"],
    [{ expires: "99999999" }, "expires"],
  ])("are checked: %o", (change, field) => {
    const found = editorSchema.safeParse({ ...valuesOf(POLICY), ...change });
    expect(found.error?.issues.map((issue) => issue.path[0])).toEqual([field]);
  });
});

describe("rebase", () => {
  it("applies a person's changes to those of another member", () => {
    const mine: EditedPolicy = {
      permissions: { ...POLICY.permissions, deny: ["Bash(rm *)", "WebFetch"], allow: [] },
      approvals: { ...POLICY.approvals, two_people: true },
    };
    const theirs: EditedPolicy = {
      permissions: { deny: ["WebSearch"], ask: ["Write"], allow: ["Read", "Glob"], hooks: { PreCompact: [] } },
      approvals: { ...POLICY.approvals, role: "lead" },
    };
    expect(rebase(POLICY, mine, theirs)).toEqual({
      permissions: { deny: ["WebSearch", "WebFetch"], ask: ["Write"], allow: ["Glob"], hooks: { PreCompact: [] } },
      approvals: { expires_after_seconds: 60, outcome: "deny", role: "lead", two_people: true },
    });
  });

  it("keeps the person's hooks if they changed them", () => {
    const mine = { ...POLICY, permissions: { ...POLICY.permissions, hooks: { Stop: [1] } } };
    const theirs = { ...POLICY, permissions: { ...POLICY.permissions, hooks: {} } };
    expect(rebase(POLICY, mine, theirs).permissions.hooks).toEqual({ Stop: [1] });
  });
});

describe("findProblem", () => {
  const refuse = (field: string | null) =>
    new ApiError(400, { error: { type: "invalid_request_error", message: "wrong", field } }, null);
  const values = { ...valuesOf(POLICY), ask: "\nBash(" };

  it.each([
    ["permissions.ask.0", { field: "ask", message: "Line 2: wrong" }],
    ["permissions.deny", { field: "deny", message: "wrong" }],
    ["permissions.hooks.Stop.0.hooks.0.type", { field: "hooks", message: "wrong" }],
    ["approvals.role", { field: "role", message: "wrong" }],
    ["approvals.other", null],
    ["expected_updated_at", null],
    [null, null],
  ])("of %s", (field, problem) => {
    expect(findProblem(refuse(field), values)).toEqual(problem);
  });
});
