// The values of the editor: from a policy, checked, as fields of a request, and combined with another member's change.
import { ApiError } from "@/api/errors";
import type { ApprovalTerms, Outcome, Permissions, Policy } from "@/api/queries/policy";
import { z } from "@/design/zod";

import { OUTCOMES } from "../model";

const MAX_EXPIRY = 366 * 86_400;
const HOOKS_EXAMPLE = '{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]}';

export const editorSchema = z.object({
  /** One rule per line. */
  deny: z.string(),
  ask: z.string(),
  allow: z.string(),
  /** JSON. Empty: no hooks. */
  hooks: z
    .string()
    .refine((text) => readHooks(text) !== undefined, `Write an object in JSON, such as ${HOOKS_EXAMPLE}`),
  /** Seconds. Empty: no limit. */
  expires: z
    .string()
    .refine(
      (text) => text.trim() === "" || (/^\d+$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= MAX_EXPIRY),
      `Write a number of seconds from 1 to ${MAX_EXPIRY.toLocaleString("en-US")}, or nothing.`,
    ),
  outcome: z.enum(["deny", "allow"]),
  role: z.string().max(64, "Shorten it to 64 characters."),
  twoPeople: z.boolean(),
});

export type EditorValues = z.infer<typeof editorSchema>;
export type EditedPolicy = Pick<Policy, "permissions" | "approvals">;

/** The rules, one per line. Empty lines and spaces around a rule have no meaning. */
export function readRules(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Null: no hooks. Undefined: it is not an object in JSON. */
function readHooks(text: string): Permissions["hooks"] | undefined {
  if (text.trim() === "") {
    return null;
  }
  try {
    const found: unknown = JSON.parse(text);
    const isObject = typeof found === "object" && found !== null && !Array.isArray(found);
    return isObject ? (found as NonNullable<Permissions["hooks"]>) : undefined;
  } catch {
    return undefined;
  }
}

export function valuesOf({ permissions, approvals }: EditedPolicy): EditorValues {
  const { hooks } = permissions;
  return {
    deny: permissions.deny.join("\n"),
    ask: permissions.ask.join("\n"),
    allow: permissions.allow.join("\n"),
    hooks: hooks == null || Object.keys(hooks).length === 0 ? "" : JSON.stringify(hooks, null, 2),
    expires: approvals.expires_after_seconds === null ? "" : String(approvals.expires_after_seconds),
    outcome: approvals.outcome,
    role: approvals.role ?? "",
    twoPeople: approvals.two_people,
  };
}

/** The policy that the values stand for. Hooks that are not valid JSON are omitted. */
export function toPolicy(values: EditorValues): EditedPolicy {
  const hooks = readHooks(values.hooks);
  return {
    permissions: {
      deny: readRules(values.deny),
      ask: readRules(values.ask),
      allow: readRules(values.allow),
      ...(hooks == null || Object.keys(hooks).length === 0 ? {} : { hooks }),
    },
    approvals: {
      expires_after_seconds: values.expires.trim() === "" ? null : Number(values.expires),
      outcome: values.outcome,
      role: values.role.trim() === "" ? null : values.role.trim(),
      two_people: values.twoPeople,
    },
  };
}

/** Applies a person's changes of `base` to what another member made of it. Of what both changed, the person's is
 * taken. */
export function rebase(base: EditedPolicy, mine: EditedPolicy, theirs: EditedPolicy): EditedPolicy {
  const rules = Object.fromEntries(
    OUTCOMES.map((outcome) => [
      outcome,
      rebaseList(base.permissions[outcome], mine.permissions[outcome], theirs.permissions[outcome]),
    ]),
  ) as Record<Outcome, string[]>;
  const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one ?? {}) === JSON.stringify(other ?? {});
  const hooks = isSame(base.permissions.hooks, mine.permissions.hooks)
    ? theirs.permissions.hooks
    : mine.permissions.hooks;
  const changed = Object.entries(mine.approvals).filter(
    ([name, value]) => value !== base.approvals[name as keyof ApprovalTerms],
  );
  return {
    permissions: { ...rules, ...(hooks == null ? {} : { hooks }) },
    approvals: { ...theirs.approvals, ...(Object.fromEntries(changed) as Partial<ApprovalTerms>) },
  };
}

function rebaseList(base: readonly string[], mine: readonly string[], theirs: readonly string[]): string[] {
  const rest = theirs.filter((rule) => !base.includes(rule) || mine.includes(rule));
  return [...rest, ...mine.filter((rule) => !base.includes(rule) && !rest.includes(rule))];
}

export interface FieldProblem {
  field: keyof EditorValues;
  message: string;
}

const TERM_FIELDS: Record<string, keyof EditorValues> = {
  expires_after_seconds: "expires",
  outcome: "outcome",
  role: "role",
  two_people: "twoPeople",
};

/** The field that a refusal of the server is about, with the line of the rule. Null: none of them. */
export function findProblem(error: unknown, values: EditorValues): FieldProblem | null {
  if (!(error instanceof ApiError) || error.field === null) {
    return null;
  }
  const [part = "", name = "", index] = error.field.split(".");
  if (part === "approvals") {
    const field = TERM_FIELDS[name];
    return field === undefined ? null : { field, message: error.message };
  }
  if (part !== "permissions") {
    return null;
  }
  if (name === "hooks") {
    return { field: "hooks", message: error.message };
  }
  const outcome = OUTCOMES.find((one) => one === name);
  if (outcome === undefined) {
    return null;
  }
  const line = index === undefined ? null : lineOfRule(values[outcome], Number(index));
  return { field: outcome, message: line === null ? error.message : `Line ${line}: ${error.message}` };
}

/** The line, from 1, on which the rule with this index is. Null: there is none. */
export function lineOfRule(text: string, index: number): number | null {
  const lines = text.split("\n").flatMap((line, at) => (line.trim() === "" ? [] : [at + 1]));
  return lines[index] ?? null;
}
