import { describe, expect, it } from "vitest";

import type { Agent } from "@/api/queries/new-session";

import { filterRules, formatLimit, listHooks, listToolsetPolicies, summarizeRules } from "./model";

const RULES = { deny: ["Bash(rm *)"], ask: [], allow: ["Read(src/**)", "Bash(npm *)"] };

describe("rules", () => {
  it("are counted by outcome, with hooks", () => {
    const hooks = { Stop: [{ matcher: "", hooks: [{ type: "python", name: "audit" }] }] };
    expect(summarizeRules({ ...RULES, hooks })).toBe("1 deny, 2 allow, 1 hook");
    expect(summarizeRules({ deny: [], ask: [], allow: [] })).toBe("");
  });

  it("are found by a part of their text", () => {
    expect(filterRules(RULES, " bash ")).toEqual({ deny: ["Bash(rm *)"], ask: [], allow: ["Bash(npm *)"] });
    expect(filterRules(RULES, "")).toBe(RULES);
  });
});

describe("listHooks", () => {
  it("lists each hook with its event and matcher, and skips what has another form", () => {
    const hooks = {
      PreToolUse: [
        {
          matcher: "Bash",
          hooks: [
            { type: "command", command: "check", timeout: 5 },
            { type: "http", url: "https://h" },
          ],
        },
      ],
      Stop: [{ matcher: "*", hooks: [{ type: "python", name: "audit", options: { a: 1 } }] }, 7],
      Notification: "no list",
    };
    expect(listHooks(hooks)).toEqual([
      { event: "PreToolUse", matcher: "Bash", kind: "command", what: "check", timeout: 5, options: "" },
      { event: "PreToolUse", matcher: "Bash", kind: "http", what: "https://h", timeout: null, options: "" },
      { event: "Stop", matcher: "", kind: "python", what: "audit", timeout: null, options: '{"a":1}' },
    ]);
    expect(listHooks(null)).toEqual([]);
  });
});

describe("listToolsetPolicies", () => {
  const policy = (type: string) => ({ enabled: true, permission_policy: { type } });

  it("lists what is not the default", () => {
    const tools = [
      {
        type: "agent_toolset_20260401",
        default_config: policy("always_allow"),
        configs: [
          { name: "bash", ...policy("always_ask") },
          { name: "read", ...policy("always_allow") },
        ],
      },
      { type: "mcp_toolset", mcp_server_name: "github", default_config: policy("always_allow"), configs: [] },
      { type: "custom", name: "mine" },
    ] as unknown as Agent["tools"];
    expect(listToolsetPolicies({ tools })).toEqual([
      { tools: "bash", outcome: "ask" },
      { tools: "Tools of github", outcome: "allow" },
    ]);
  });
});

describe("formatLimit", () => {
  it.each([
    [86_400, "1 day"],
    [7200, "2 hours"],
    [90, "90 seconds"],
    [1, "1 second"],
  ])("%i is %s", (seconds, text) => {
    expect(formatLimit(seconds)).toBe(text);
  });
});
