// A version of an agent as lines of text, so that two versions can be compared.
import type { Agent } from "@/api/queries/agents";

import { furtherFields } from "./model";
import { findToolset, readSettings, TOOL_SETTINGS, TOOLS } from "./toolset";

export function describeVersion(agent: Agent): string {
  const toolset = findToolset(agent);
  const settings = readSettings(toolset);
  const labels = new Map(TOOL_SETTINGS.map(({ value, label }) => [value, label]));
  const tools =
    toolset === undefined
      ? ["none"]
      : [
          ...TOOLS.map((name) => `${name}: ${labels.get(settings[name]) ?? ""}`),
          `ask_user: ${toolset.ask_user === true ? "On" : "Off"}`,
          `spawn_sessions: ${toolset.spawn_sessions === true ? "On" : "Off"}`,
        ];
  const { deny = [], ask = [], allow = [], ...others } = agent.permissions ?? {};
  const rules = [
    ...deny.map((rule) => `deny: ${rule}`),
    ...ask.map((rule) => `ask: ${rule}`),
    ...allow.map((rule) => `allow: ${rule}`),
    ...Object.entries(others)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => `${name}: ${JSON.stringify(value, null, 2)}`),
  ];
  const further = furtherFields(agent);
  return [
    `Name: ${agent.name}`,
    `Description: ${agent.description ?? ""}`,
    `Model: ${agent.model.id}`,
    `Harness: ${agent.harness ?? "default of the server"}`,
    "",
    "System prompt",
    agent.system ?? "none",
    "",
    "Built-in tools",
    ...tools,
    "",
    "Rules",
    ...(rules.length === 0 ? ["none"] : rules),
    ...(Object.keys(further).length === 0 ? [] : ["", "Further fields", JSON.stringify(further, null, 2)]),
    "",
  ].join("\n");
}

/** `2-5`: the versions that an address compares. Null: it names none. */
export function parseVersions(text: string): readonly [number, number] | null {
  const match = /^(\d{1,9})-(\d{1,9})$/.exec(text);
  return match === null ? null : [Number(match[1]), Number(match[2])];
}
