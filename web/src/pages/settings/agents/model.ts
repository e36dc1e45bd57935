// The values of the form of an agent: from an agent, checked, and as fields of a request.
import type { Agent } from "@/api/queries/agents";
import { z } from "@/design/zod";

import { isSame, pickChanged } from "../work/changed-fields";
import { findToolset, readSettings, TOOLS, TOOLSET, type ToolName, writeToolset } from "./toolset";

const LONGEST_NAME = 256;
const LONGEST_DESCRIPTION = 2048;
const LONGEST_PROMPT = 100_000;

const setting = z.enum(["on", "ask", "allow", "off"]);

export const agentSchema = z.object({
  name: z
    .string()
    .trim()
    .min(1, "Give the agent a name.")
    .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  description: z.string().max(LONGEST_DESCRIPTION, `Shorten it to ${LONGEST_DESCRIPTION} characters.`),
  model: z.string().trim().min(1, "Choose a model.").max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  harness: z.string().max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
  system: z.string().max(LONGEST_PROMPT, `Shorten it to ${LONGEST_PROMPT.toLocaleString("en-US")} characters.`),
  hasTools: z.boolean(),
  tools: z.object(Object.fromEntries(TOOLS.map((name) => [name, setting])) as Record<ToolName, typeof setting>),
  asksUser: z.boolean(),
  spawnsSessions: z.boolean(),
  /** One rule per line. */
  deny: z.string(),
  ask: z.string(),
  allow: z.string(),
  /** All other fields of the agent, as JSON. */
  further: z.string().superRefine((text, context) => {
    const problem = findJsonProblem(text);
    if (problem !== null) {
      context.addIssue({ code: "custom", message: problem });
    }
  }),
});

export type AgentValues = z.infer<typeof agentSchema>;

type Fields = Record<string, unknown>;

/** Fields that have a place of their own in the form, or that are not the agent's to set. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...["id", "type", "version", "created_at", "updated_at", "archived_at", "execution_identity"],
  ...["name", "description", "model", "harness", "system", "permissions"],
]);

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    (Array.isArray(value) && value.length === 0) ||
    (isObject(value) && Object.keys(value).length === 0)
  );
}

function findJsonProblem(text: string): string | null {
  if (text.trim() === "") {
    return null;
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (!isObject(parsed)) {
    return 'Write an object, such as {"limits": {"max_iterations": 50}}.';
  }
  const own = Object.keys(parsed).find((name) => OWN_FIELDS.has(name));
  if (own !== undefined) {
    return `Remove ${own}: it has a field of its own, or cannot be set.`;
  }
  const tools = parsed["tools"];
  if (tools !== undefined && !Array.isArray(tools)) {
    return "Write tools as a list.";
  }
  return tools?.some((tool: unknown) => isObject(tool) && tool["type"] === TOOLSET) === true
    ? "Choose the built-in tools above. Here, tools has only the others."
    : null;
}

/** All fields that the form has no place for, without those that are empty. */
export function furtherFields(agent: Agent): Fields {
  const others = Object.entries(agent).filter(([name, value]) => !OWN_FIELDS.has(name) && !isEmpty(value));
  const fields: Fields = Object.fromEntries(others);
  const tools = agent.tools.filter((tool) => tool.type !== TOOLSET);
  delete fields["tools"];
  return tools.length === 0 ? fields : { tools, ...fields };
}

export function newValues(model: string): AgentValues {
  return {
    name: "",
    description: "",
    model,
    harness: "",
    system: "",
    hasTools: true,
    tools: readSettings(undefined),
    asksUser: true,
    spawnsSessions: false,
    deny: "",
    ask: "",
    allow: "",
    further: "",
  };
}

export function valuesOf(agent: Agent): AgentValues {
  const toolset = findToolset(agent);
  const further = furtherFields(agent);
  const { permissions } = agent;
  return {
    name: agent.name,
    description: agent.description ?? "",
    model: agent.model.id,
    harness: agent.harness ?? "",
    system: agent.system ?? "",
    hasTools: toolset !== undefined,
    tools: readSettings(toolset),
    asksUser: toolset?.ask_user === true,
    spawnsSessions: toolset?.spawn_sessions === true,
    deny: joinLines(permissions?.deny),
    ask: joinLines(permissions?.ask),
    allow: joinLines(permissions?.allow),
    further: isEmpty(further) ? "" : JSON.stringify(further, null, 2),
  };
}

function joinLines(rules: readonly string[] | undefined): string {
  return (rules ?? []).join("\n");
}

function splitLines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The fields of a request that creates the agent, or those that the form changed. `agent`: null for a new one. */
export function toFields(values: AgentValues, agent: Agent | null): Fields {
  const after = allFields(values, agent);
  if (agent === null) {
    return Object.fromEntries(Object.entries(after).filter(([, value]) => !isEmpty(value)));
  }
  const changed = pickChanged(allFields(valuesOf(agent), agent), after);
  return isEmpty(changed) ? {} : { ...changed, version: agent.version };
}

function allFields(values: AgentValues, agent: Agent | null): Fields {
  const { tools: otherTools = [], ...further } = parseFurther(values.further) as { tools?: unknown[] } & Fields;
  const stored = agent === null ? {} : furtherFields(agent);
  const removed = Object.keys(stored).filter((name) => name !== "tools" && !(name in further));
  const own = values.hasTools
    ? [
        writeToolset(agent === null ? undefined : findToolset(agent), values.tools, {
          ask_user: values.asksUser,
          spawn_sessions: values.spawnsSessions,
        }),
      ]
    : [];
  const rules = { deny: splitLines(values.deny), ask: splitLines(values.ask), allow: splitLines(values.allow) };
  const permissions = { ...agent?.permissions, ...rules };
  return {
    name: values.name.trim(),
    description: values.description.trim() || null,
    model: values.model.trim(),
    harness: values.harness.trim() || null,
    system: values.system || null,
    tools: [...own, ...otherTools],
    permissions: isEmpty(Object.values(permissions).flat()) ? null : permissions,
    ...further,
    ...Object.fromEntries(removed.map((name) => [name, null])),
    ...("metadata" in further || "metadata" in stored ? { metadata: metadataPatch(further, stored) } : {}),
  };
}

function parseFurther(text: string): Fields {
  return text.trim() === "" ? {} : (JSON.parse(text) as Fields);
}

/** The server merges metadata by key: a key that was removed has to be sent as null. */
function metadataPatch(further: Fields, stored: Fields): unknown {
  const [after, before] = [further["metadata"] ?? {}, stored["metadata"] ?? {}];
  if (!isObject(after) || !isObject(before) || isSame(after, before)) {
    return after;
  }
  const removed = Object.keys(before).filter((name) => !(name in after));
  return { ...after, ...Object.fromEntries(removed.map((name) => [name, null])) };
}

const FIELDS: readonly [RegExp, keyof AgentValues][] = [
  [/^name/, "name"],
  [/^description/, "description"],
  [/^model($|\.)/, "model"],
  [/^harness/, "harness"],
  [/^system/, "system"],
  [/^permissions\.deny/, "deny"],
  [/^permissions\.ask/, "ask"],
  [/^permissions\.allow/, "allow"],
];

/** The field of the form for the server's name of a field. What has none is about the further fields, as `tools` is. */
export function findField(field: string): keyof AgentValues | null {
  const found = FIELDS.find(([pattern]) => pattern.test(field))?.[1];
  return found ?? (field === "version" ? null : "further");
}
