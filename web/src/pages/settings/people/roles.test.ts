import { describe, expect, it } from "vitest";

import {
  describeRestriction,
  describeRole,
  findRoleProblem,
  fromRoleValues,
  permissionsOf,
  splitOwnRoles,
  toRoleValues,
} from "./roles";

describe("permissionsOf", () => {
  it("joins the permissions of all roles, and ignores the organisation's own", () => {
    expect(permissionsOf(["operator", "approver"])).toEqual(["view", "operate", "approve"]);
    expect(permissionsOf(["release_manager", "toString"])).toEqual([]);
  });
});

describe("describeRole", () => {
  it("says what the role adds", () => {
    expect(describeRole("viewer")).toBe("read everything");
    expect(describeRole("member")).toBe("work in sessions, decide calls");
    expect(describeRole("admin")).toBe("everything");
  });
});

describe("describeRestriction", () => {
  it("is null if the member's roles permit all that the key's do", () => {
    expect(describeRestriction(["member"], ["admin"])).toBeNull();
    expect(describeRestriction(["member"], ["operator", "approver"])).toBeNull();
  });

  it("lists what remains", () => {
    expect(describeRestriction(["member"], ["operator"])).toBe("read everything, work in sessions");
    expect(describeRestriction(["admin"], ["release_manager"])).toBe("nothing");
  });
});

describe("roles as values of a form", () => {
  it("keeps own roles apart", () => {
    const values = toRoleValues(["member", "release_manager", "qa"]);
    expect(values).toEqual({ roles: ["member"], ownRoles: "release_manager, qa" });
    expect(fromRoleValues(values)).toEqual(["member", "release_manager", "qa"]);
    expect(splitOwnRoles(" qa,, qa  ops ")).toEqual(["qa", "ops"]);
  });

  it("reports what the server would refuse", () => {
    expect(findRoleProblem({ roles: [], ownRoles: "" })?.path).toBe("roles");
    expect(findRoleProblem({ roles: ["viewer"], ownRoles: "9lives" })?.path).toBe("ownRoles");
    const many = Array.from({ length: 21 }, (_, index) => `role_${index}`).join(" ");
    expect(findRoleProblem({ roles: [], ownRoles: many })?.path).toBe("ownRoles");
    expect(findRoleProblem({ roles: ["viewer"], ownRoles: "qa" })).toBeNull();
  });
});
