import { describe, expect, it } from "vitest";

import type { Agent } from "@/api/queries/agents";

import { agentSchema, type AgentValues, findField, newValues, toFields, valuesOf } from "./model";
import { TOOLSET } from "./toolset";
import { describeVersion, parseVersions } from "./version-text";

const ALLOW = { type: "always_allow" };
const ASK = { type: "always_ask" };

/** As the server reports it: with a policy for every tool, whether it was set or not. */
function stored(fields: Record<string, unknown> = {}): Agent {
  return {
    id: "agent_1",
    type: "agent",
    version: 3,
    name: "engineer",
    description: null,
    model: { id: "anthropic/claude-sonnet-5", speed: "standard" },
    system: "Be brief.",
    tools: [
      {
        type: TOOLSET,
        configs: [
          { type: "bash", name: "bash", enabled: true, permission_policy: ASK, note: "unknown" },
          { type: "web_fetch", name: "web_fetch", enabled: false, permission_policy: ALLOW },
          { type: "web_search", name: "web_search", enabled: false, permission_policy: ALLOW },
        ],
        default_config: { enabled: true, permission_policy: ALLOW },
        ask_user: true,
        novelty: 1,
      },
      { type: "custom", name: "lookup", description: "Looks up", input_schema: { type: "object" } },
    ],
    mcp_servers: [],
    skills: [],
    multiagent: null,
    execution_identity: { type: "service_account" },
    metadata: { team: "web", cost: "7" },
    created_at: "2026-11-19T10:00:00Z",
    updated_at: "2026-11-19T10:00:00Z",
    archived_at: null,
    ...fields,
  } as unknown as Agent;
}

function edit(change: Partial<AgentValues>, agent = stored()): Record<string, unknown> {
  return toFields({ ...valuesOf(agent), ...change }, agent);
}

describe("the form of an agent", () => {
  it("sends nothing if nothing was changed", () => {
    expect(edit({})).toEqual({});
  });

  it("sends only what was changed, with the version that it was read in", () => {
    expect(edit({ system: "Be thorough." })).toEqual({ system: "Be thorough.", version: 3 });
    expect(edit({ system: "", description: "For the web" })).toEqual({
      system: null,
      description: "For the web",
      version: 3,
    });
  });

  it("changes a tool without making the reported defaults into rules, and keeps what it does not know", () => {
    const fields = edit({ tools: { ...valuesOf(stored()).tools, web_fetch: "on" } });
    const [toolset, custom] = fields["tools"] as [Record<string, unknown>, unknown];
    const configs = toolset["configs"] as { name: string; enabled: boolean; permission_policy?: unknown }[];
    expect(toolset).toMatchObject({ novelty: 1, ask_user: true, default_config: { enabled: true } });
    expect(toolset["default_config"]).not.toHaveProperty("permission_policy");
    expect(configs.find((one) => one.name === "bash")).toEqual({
      type: "bash",
      name: "bash",
      enabled: true,
      permission_policy: ASK,
      note: "unknown",
    });
    expect(configs.find((one) => one.name === "web_fetch")).toEqual({
      type: "web_fetch",
      name: "web_fetch",
      enabled: true,
    });
    expect(configs.filter((one) => one.permission_policy !== undefined)).toHaveLength(1);
    expect(custom).toMatchObject({ name: "lookup" });
  });

  it("gives a tool a policy of its own, and turns one off", () => {
    const fields = edit({ tools: { ...valuesOf(stored()).tools, bash: "allow", write: "off" } });
    const [toolset] = fields["tools"] as [{ configs: { name: string }[] }];
    expect(toolset.configs.find((one) => one.name === "bash")).toMatchObject({ permission_policy: ALLOW });
    expect(toolset.configs.find((one) => one.name === "write")).toEqual({
      type: "write",
      name: "write",
      enabled: false,
    });
  });

  it("removes the built-in tools, and keeps the others", () => {
    expect(edit({ hasTools: false })["tools"]).toEqual([expect.objectContaining({ name: "lookup" })]);
  });

  it("changes rules, and keeps the hooks of the agent", () => {
    const hooks = { PreToolUse: [{ matcher: "Bash" }] };
    const agent = stored({ permissions: { deny: ["Bash(rm *)"], ask: [], allow: [], hooks } });
    expect(valuesOf(agent).deny).toBe("Bash(rm *)");
    expect(edit({ allow: " Bash(make *) \n\nRead\n" }, agent)["permissions"]).toEqual({
      deny: ["Bash(rm *)"],
      ask: [],
      allow: ["Bash(make *)", "Read"],
      hooks,
    });
  });

  it("clears further fields that were removed, and keys of the metadata", () => {
    const agent = stored({ limits: { max_iterations: 5 } });
    const further = JSON.parse(valuesOf(agent).further) as Record<string, unknown>;
    expect(Object.keys(further)).toEqual(["tools", "metadata", "limits"]);
    expect(edit({ further: '{"metadata": {"team": "api"}}' }, agent)).toEqual({
      tools: [expect.objectContaining({ type: TOOLSET })],
      limits: null,
      metadata: { team: "api", cost: null },
      version: 3,
    });
  });

  it("creates an agent without empty fields", () => {
    const fields = toFields({ ...newValues("a/b"), name: " ci " }, null);
    expect(Object.keys(fields).sort()).toEqual(["model", "name", "tools"]);
    expect(fields["name"]).toBe("ci");
  });

  it.each([
    ["{", /This is not JSON/],
    ["[]", /Write an object/],
    ['{"name": "x"}', /Remove name/],
    ['{"tools": {}}', /as a list/],
    [`{"tools": [{"type": "${TOOLSET}"}]}`, /built-in tools above/],
  ])("refuses the further fields %s", (further, message) => {
    const result = agentSchema.safeParse({ ...newValues("a/b"), name: "x", further });
    expect(result.error?.issues[0]?.message).toMatch(message);
    expect(result.error?.issues[0]?.path).toEqual(["further"]);
  });

  it("finds the field of an error", () => {
    expect(findField("permissions.deny.0")).toBe("deny");
    expect(findField("model.id")).toBe("model");
    expect(findField("model_parameters")).toBe("further");
    expect(findField("tools.1.mcp_server_name")).toBe("further");
    expect(findField("version")).toBeNull();
  });
});

describe("a version as text", () => {
  it("has every field, so that no change is hidden", () => {
    const text = describeVersion(
      stored({ permissions: { deny: ["Bash(rm *)"], ask: [], allow: [] }, future: "field" }),
    );
    for (const line of [
      "Model: anthropic/claude-sonnet-5",
      "Be brief.",
      "bash: On, ask each time",
      "deny: Bash(rm *)",
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text).toContain('"future": "field"');
  });

  it("reads the versions of an address", () => {
    expect(parseVersions("2-5")).toEqual([2, 5]);
    expect(parseVersions("2")).toBeNull();
    expect(parseVersions("a-b")).toBeNull();
  });
});
