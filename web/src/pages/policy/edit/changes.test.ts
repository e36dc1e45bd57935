import { describe, expect, it } from "vitest";

import type { Permissions } from "@/api/queries/policy";

import { countChanges, describeDefault, findChanges } from "./changes";
import type { EditedPolicy } from "./model";

const TERMS = { expires_after_seconds: null, outcome: "deny", role: null, two_people: false } as const;

function policy(permissions: Partial<Permissions>, approvals: Partial<EditedPolicy["approvals"]> = {}): EditedPolicy {
  return { permissions: { deny: [], ask: [], allow: [], ...permissions }, approvals: { ...TERMS, ...approvals } };
}

const hook = (command: string) => ({ matcher: "Bash", hooks: [{ type: "command", command }] });

describe("findChanges", () => {
  it("finds rules that are added, removed or moved, whatever their order", () => {
    const before = policy({ deny: ["A", "B"], ask: ["C"], allow: ["D"] });
    const after = policy({ deny: ["B", "C", "E"], ask: ["C"], allow: [] });
    expect(findChanges(before, after).rules).toEqual([
      { rule: "A", from: "deny", to: null },
      { rule: "C", from: null, to: "deny" },
      { rule: "D", from: "allow", to: null },
      { rule: "E", from: null, to: "deny" },
    ]);
    expect(findChanges(policy({ ask: ["C"] }), policy({ allow: ["C"] })).rules).toEqual([
      { rule: "C", from: "ask", to: "allow" },
    ]);
    expect(countChanges(findChanges(before, policy({ deny: ["B", "A"], ask: ["C"], allow: ["D"] })))).toBe(0);
  });

  it("finds changed hooks and their order", () => {
    const before = policy({ hooks: { PreToolUse: [hook("a"), hook("b")] } });
    const added = findChanges(before, policy({ hooks: { PreToolUse: [hook("a"), hook("c")] } }));
    expect([added.addedHooks.map((one) => one.what), added.removedHooks.map((one) => one.what)]).toEqual([
      ["c"],
      ["b"],
    ]);
    const moved = findChanges(before, policy({ hooks: { PreToolUse: [hook("b"), hook("a")] } }));
    expect([moved.hasOtherHookOrder, countChanges(moved)]).toEqual([true, 1]);
  });

  it("finds changed approval settings", () => {
    const after = policy({}, { expires_after_seconds: 3600, two_people: true });
    expect(findChanges(policy({}), after).terms).toEqual([
      { title: "Time limit", before: "none", after: "1 hour" },
      { title: "A second person decides", before: "no", after: "yes" },
    ]);
  });
});

describe("describeDefault", () => {
  const none = policy({ hooks: { Stop: [hook("a")] } });
  const some = policy({ allow: ["Read"] });

  it("says what the first rule and the last one change", () => {
    expect(describeDefault(none, some)).toContain("first rules");
    expect(describeDefault(some, none)).toContain("no rules");
    expect([describeDefault(none, none), describeDefault(some, some)]).toEqual([null, null]);
  });
});
