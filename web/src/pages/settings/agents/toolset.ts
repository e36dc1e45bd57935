// The built-in tools of an agent: what each may do, read from the agent's toolset and written back.
import type { Agent } from "@/api/queries/agents";

export const TOOLSET = "agent_toolset_20260401";
export const TOOLS = ["bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search"] as const;
export type ToolName = (typeof TOOLS)[number];
/** `on`: the rules decide. */
export type ToolSetting = "on" | "ask" | "allow" | "off";

export const TOOL_SETTINGS: readonly { value: ToolSetting; label: string }[] = [
  { value: "on", label: "On" },
  { value: "ask", label: "On, ask each time" },
  { value: "allow", label: "On, always allow" },
  { value: "off", label: "Off" },
];

type Toolset = Extract<Agent["tools"][number], { type: typeof TOOLSET }>;

const WEB_TOOLS: ReadonlySet<ToolName> = new Set(["web_fetch", "web_search"]);

export function findToolset(agent: Pick<Agent, "tools">): Toolset | undefined {
  return agent.tools.find((tool): tool is Toolset => tool.type === TOOLSET);
}

export type ToolSettings = Record<ToolName, ToolSetting>;

/** The server reports `always_allow` also for a tool without a policy of its own, so this reads it as `on`. */
export function readSettings(toolset: Toolset | undefined): ToolSettings {
  const read = (name: ToolName): ToolSetting => {
    const config = toolset?.configs.find((one) => one.name === name);
    const isOn = config?.enabled ?? (!WEB_TOOLS.has(name) && (toolset?.default_config.enabled ?? true));
    const policy = (config ?? toolset?.default_config)?.permission_policy.type;
    return isOn ? (policy === "always_ask" ? "ask" : "on") : "off";
  };
  return Object.fromEntries(TOOLS.map((name) => [name, read(name)])) as ToolSettings;
}

const POLICIES: Partial<Record<ToolSetting, string>> = { ask: "always_ask", allow: "always_allow" };

/** The toolset with these settings. Fields that this page does not know stay. */
export function writeToolset(
  stored: Toolset | undefined,
  settings: ToolSettings,
  extras: { ask_user: boolean; spawn_sessions: boolean },
): Record<string, unknown> {
  const { permission_policy: _policy, ...defaults } = stored?.default_config ?? {
    enabled: true,
    permission_policy: null,
  };
  return {
    ...stored,
    type: TOOLSET,
    configs: TOOLS.map((name) => {
      const { permission_policy: _own, ...config } = stored?.configs.find((one) => one.name === name) ?? {
        permission_policy: null,
      };
      const policy = POLICIES[settings[name]];
      return {
        ...config,
        type: name,
        name,
        enabled: settings[name] !== "off",
        ...(policy === undefined ? {} : { permission_policy: { type: policy } }),
      };
    }),
    default_config: defaults,
    ...extras,
  };
}
