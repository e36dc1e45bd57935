// The state of an API key, and the values of the form of a new one.
import type { ApiKey, ApiKeyFields } from "@/api/queries/people";
import { z } from "@/design/zod";

import { findRoleProblem, fromRoleValues, roleFields } from "../people/roles";
import type { FieldTable } from "../people/use-form-save";

export type KeyState = "active" | "expired" | "revoked";

export function keyState(key: Pick<ApiKey, "revoked_at" | "expires_at">, now: number): KeyState {
  if (key.revoked_at !== null) {
    return "revoked";
  }
  return key.expires_at !== null && Date.parse(key.expires_at) <= now ? "expired" : "active";
}

const LONGEST_NAME = 200;
const MOST_PROJECTS = 20;
const DAY_MS = 24 * 3600 * 1000;

export const EXPIRIES = [
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "date", label: "After a date" },
  { value: "never", label: "Never" },
] as const;

export const keySchema = z
  .object({
    name: z
      .string()
      .trim()
      .min(1, "Give the key a name, such as the device or the job that uses it.")
      .max(LONGEST_NAME, `Shorten it to ${LONGEST_NAME} characters.`),
    /** Null: a new service account with the name of the key. */
    memberId: z.string().nullable(),
    ...roleFields,
    expires: z.enum(["30", "90", "365", "date", "never"]),
    /** `2026-12-31`, the last day on which the key works. */
    date: z.string(),
    isRestricted: z.boolean(),
    projectIds: z.array(z.string()),
  })
  .superRefine((values, context) => {
    const refuse = (path: string, message: string): void => {
      context.addIssue({ code: "custom", path: [path], message });
    };
    const problem = findRoleProblem(values);
    if (problem !== null) {
      refuse(problem.path, problem.message);
    }
    if (values.expires === "date") {
      const end = endOfDay(values.date);
      if (end === null) {
        refuse("date", "Choose the last day on which the key works.");
      } else if (end.getTime() <= Date.now()) {
        refuse("date", "Choose today or a later day.");
      }
    }
    if (values.isRestricted && values.projectIds.length === 0) {
      refuse("projectIds", "Choose a project, or all projects.");
    }
    if (values.isRestricted && values.projectIds.length > MOST_PROJECTS) {
      refuse("projectIds", `Choose ${MOST_PROJECTS} projects or fewer.`);
    }
  });

export type KeyValues = z.infer<typeof keySchema>;

export function newKeyValues(memberId: string | null): KeyValues {
  return {
    name: "",
    memberId,
    roles: ["member"],
    ownRoles: "",
    expires: "90",
    date: "",
    isRestricted: false,
    projectIds: [],
  };
}

/** The end of a day, as the clocks of this browser show it. */
function endOfDay(date: string): Date | null {
  const end = new Date(`${date}T23:59:59`);
  return /^\d{4}-\d{2}-\d{2}$/.test(date) && !Number.isNaN(end.getTime()) ? end : null;
}

export function expiryOf({ expires, date }: Pick<KeyValues, "expires" | "date">, now: number): string | null {
  if (expires === "never") {
    return null;
  }
  return expires === "date"
    ? (endOfDay(date)?.toISOString() ?? null)
    : new Date(now + Number(expires) * DAY_MS).toISOString();
}

export function toKeyFields(values: KeyValues, now: number): ApiKeyFields {
  return {
    name: values.name.trim(),
    member_id: values.memberId,
    roles: fromRoleValues(values),
    expires_at: expiryOf(values, now),
    project_ids: values.isRestricted ? values.projectIds : null,
  };
}

export const KEY_FIELDS: FieldTable<KeyValues> = [
  ["name", "name"],
  ["member_id", "memberId"],
  ["roles", "roles"],
  ["expires_at", "date"],
  ["project_ids", "projectIds"],
];

/** What stops working when the key is revoked, in sentences. */
export function describeRevocation(key: ApiKey, usedByThisBrowser: boolean): string {
  const owner = key.member_name === key.name ? "" : ` of ${key.member_name}`;
  return [
    usedByThisBrowser
      ? "You are signed in with this key, so revoking it signs you out."
      : `Programs and browsers that use this key${owner} stop working within 5 seconds, and their open streams end.`,
    "Turns that run go on to their end.",
    "A revoked key cannot be used again: create a new one instead.",
  ].join(" ");
}
