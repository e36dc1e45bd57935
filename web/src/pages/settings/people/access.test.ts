import { describe, expect, it } from "vitest";

import { findAccessProblem } from "./access";

describe("findAccessProblem", () => {
  it("names the role that is missing, and the own ones", () => {
    const me = { permissions: ["view"], roles: ["viewer"], project_ids: null };
    expect(findAccessProblem(me)).toContain("needs the role admin, and you have viewer");
    expect(findAccessProblem({ ...me, roles: [] })).toContain("you have no role");
    expect(findAccessProblem({ ...me, permissions: ["view", "manage_members"] })).toBeNull();
  });

  it("says that a key of some projects cannot, whatever its roles", () => {
    const me = { permissions: ["manage_members"], roles: ["admin"], project_ids: ["proj_1"] };
    expect(findAccessProblem(me)).toContain("restricted to some projects");
  });
});
