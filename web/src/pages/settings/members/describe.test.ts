import { describe, expect, it } from "vitest";

import type { Team } from "@/api/queries/people";

import { describeEnabling, describeSignIn, describeWork, teamsByMember } from "./describe";

describe("describeSignIn", () => {
  it("names all ways", () => {
    expect(describeSignIn({ sign_in_methods: ["oidc", "api_key"] })).toBe("identity provider, API key");
    expect(describeSignIn({ sign_in_methods: [] })).toBe("no way yet");
  });
});

describe("teamsByMember", () => {
  it("lists the teams of each member", () => {
    const web = { name: "web", member_ids: ["memb_1", "memb_2"] } as Team;
    const ops = { name: "ops", member_ids: ["memb_1"] } as Team;
    const found = teamsByMember([web, ops]);
    expect(found.get("memb_1")).toEqual(["web", "ops"]);
    expect(found.get("memb_2")).toEqual(["web"]);
    expect(found.get("memb_3")).toBeUndefined();
  });
});

describe("what becomes of the work", () => {
  it("depends on the successor", () => {
    expect(describeWork(null)).toContain("Queued messages wait");
    expect(describeWork("Ben")).toContain("belong to Ben");
    expect(describeEnabling(null)).not.toContain("handed over");
    expect(describeEnabling("Ben")).toContain("stays with Ben");
  });
});
