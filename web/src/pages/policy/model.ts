// What the sections of this page share: rules by outcome, hooks as a list, toolsets, and names of layers.
import type { Agent } from "@/api/queries/new-session";
import type { Outcome, Permissions } from "@/api/queries/policy";

/** In the order of precedence. */
export const OUTCOMES: readonly Outcome[] = ["deny", "ask", "allow"];
export const LAYERS = ["organisation", "project", "agent", "session"] as const;
export type Layer = (typeof LAYERS)[number];

export const LAYER_TITLES: Record<Layer, string> = {
  organisation: "Organisation",
  project: "Project",
  agent: "Agent",
  session: "Session",
};

export function layerTitle(layer: string): string {
  return LAYERS.find((one) => one === layer) === undefined ? layer : LAYER_TITLES[layer as Layer];
}

export function countRules(permissions: Permissions): number {
  return OUTCOMES.reduce((sum, outcome) => sum + permissions[outcome].length, 0);
}

/** `2 deny, 1 ask`. Outcomes without a rule are omitted. */
export function summarizeRules(permissions: Permissions): string {
  const parts = OUTCOMES.map((outcome) => ({ outcome, count: permissions[outcome].length }))
    .filter(({ count }) => count > 0)
    .map(({ outcome, count }) => `${count.toLocaleString("en-US")} ${outcome}`);
  const hooks = listHooks(permissions.hooks).length;
  return [...parts, ...(hooks === 0 ? [] : [hooks === 1 ? "1 hook" : `${hooks} hooks`])].join(", ");
}

/** Only the rules that contain the text. */
export function filterRules(permissions: Permissions, text: string): Permissions {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") {
    return permissions;
  }
  const matches = (rules: readonly string[]): string[] => rules.filter((rule) => rule.toLowerCase().includes(wanted));
  return { deny: matches(permissions.deny), ask: matches(permissions.ask), allow: matches(permissions.allow) };
}

export interface HookEntry {
  event: string;
  /** Empty: it runs for everything. */
  matcher: string;
  kind: string;
  /** The command, the address or the name of the function. */
  what: string;
  timeout: number | null;
  /** Of a Python hook, as JSON. Empty: none. */
  options: string;
}

/** The hooks of a layer, in the order in which they run. What has another form is skipped. */
export function listHooks(hooks: Permissions["hooks"]): HookEntry[] {
  return Object.entries(hooks ?? {}).flatMap(([event, groups]) =>
    asList(groups).flatMap((group) => {
      const matcher = asText(asRecord(group)["matcher"]);
      return asList(asRecord(group)["hooks"]).map((one) => describeHook(event, matcher, asRecord(one)));
    }),
  );
}

function describeHook(event: string, matcher: string, hook: Record<string, unknown>): HookEntry {
  const { type, command, url, name, timeout, options } = hook;
  const hasOptions = Object.keys(asRecord(options)).length > 0;
  return {
    event,
    matcher: matcher === "*" ? "" : matcher,
    kind: asText(type),
    what: [command, url, name].map(asText).find((text) => text !== "") ?? "",
    timeout: typeof timeout === "number" ? timeout : null,
    options: hasOptions ? JSON.stringify(options) : "",
  };
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export interface ToolsetPolicy {
  /** Such as "Built-in tools" or "Tools of github". */
  tools: string;
  outcome: "allow" | "ask";
}

const TOOLSET_OUTCOMES: Record<string, "allow" | "ask"> = { always_allow: "allow", always_ask: "ask" };

/** What the toolsets of an agent add to its rules. `always_allow` of the built-in tools is the default, which says
 * nothing. */
export function listToolsetPolicies(agent: Pick<Agent, "tools">): ToolsetPolicy[] {
  return agent.tools.flatMap((toolset) => {
    if (toolset.type !== "agent_toolset_20260401" && toolset.type !== "mcp_toolset") {
      return [];
    }
    const isBuiltIn = toolset.type === "agent_toolset_20260401";
    const tools = isBuiltIn ? "Built-in tools" : `Tools of ${toolset.mcp_server_name}`;
    const standard = toolset.default_config.permission_policy.type;
    const entries = [
      { tools, policy: standard, isDefault: isBuiltIn && standard === "always_allow" },
      ...toolset.configs.map((config) => ({
        tools: isBuiltIn ? config.name : `${config.name} of ${toolset.mcp_server_name}`,
        policy: config.permission_policy.type,
        isDefault: config.permission_policy.type === standard,
      })),
    ];
    return entries.flatMap(({ tools: name, policy, isDefault }) => {
      const outcome = TOOLSET_OUTCOMES[policy];
      return outcome === undefined || isDefault ? [] : [{ tools: name, outcome }];
    });
  });
}

/** `30 s`, `2 h`: a time limit of approvals, in the largest unit that fits. */
export function formatLimit(seconds: number): string {
  const unit = UNITS.find(({ size }) => seconds % size === 0) ?? { size: 1, name: "second" };
  const count = seconds / unit.size;
  return `${count} ${unit.name}${count === 1 ? "" : "s"}`;
}

const UNITS = [
  { size: 86_400, name: "day" },
  { size: 3600, name: "hour" },
  { size: 60, name: "minute" },
];
