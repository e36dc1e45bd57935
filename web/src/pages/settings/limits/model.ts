// What each limit counts, who has set it, and the values of the form that sets one.
import type { Limit, LimitFields } from "@/api/queries/people";
import { formatBytes } from "@/design/format";
import { z } from "@/design/zod";

import type { FieldTable } from "../people/use-form-save";

export type LimitName = Limit["name"];

export const LIMITS: Record<LimitName, { title: string; counts: string; beyond: string }> = {
  concurrent_turns: {
    title: "Concurrent turns",
    counts: "Turns that run, or wait for a retry",
    beyond: "further turns wait",
  },
  queued_steps: {
    title: "Queued steps",
    counts: "Messages and steps whose turn has not begun",
    beyond: "further ones are refused",
  },
  sessions: {
    title: "Sessions",
    counts: "Sessions that are not archived and have not ended",
    beyond: "further ones are refused",
  },
  streams: { title: "Streams", counts: "Open event streams", beyond: "further ones are refused" },
  requests_per_second: {
    title: "Requests per second",
    counts: "On average over 10 seconds",
    beyond: "further ones are refused",
  },
  stored_bytes: {
    title: "Stored files",
    counts: "The size of uploaded files and of outputs",
    beyond: "further uploads are refused",
  },
};
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[];

/** The address of a limit in the list. */
export function limitId(limit: Pick<Limit, "name" | "scope" | "member_id">): string {
  return `${limit.name}/${limit.member_id ?? limit.scope}`;
}

export function describeScope(limit: Pick<Limit, "scope" | "member_id" | "member_name">): string {
  switch (limit.scope) {
    case "organisation":
      return "Organisation";
    case "each_member":
      return "Each member";
    case "member":
      return limit.member_name ?? limit.member_id ?? "Member";
  }
}

/** `20`, `1.5`, or a size. */
export function formatAmount(name: LimitName, amount: number): string {
  return name === "stored_bytes" ? formatBytes(amount) : amount.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** Who has set the value that applies. */
export function describeSetter(limit: Pick<Limit, "value" | "own_value" | "operator_value" | "scope">): string {
  const { value, own_value: own, operator_value: operator } = limit;
  if (value === null) {
    return "";
  }
  if (own !== null && own === value) {
    return "organisation";
  }
  return operator !== null && operator === value ? "server" : "each member";
}

/** How much is used, from 0 to 1. Null: unlimited, or not counted. */
export function usedShare({ value, used }: Pick<Limit, "value" | "used">): number | null {
  if (value === null || used === null) {
    return null;
  }
  return value === 0 ? 1 : Math.min(used / value, 1);
}

/** What applies when the own limit is removed. */
export function describeRemoval(limit: Limit, all: readonly Limit[]): string {
  const each =
    limit.scope === "member" ? all.find((one) => one.name === limit.name && one.scope === "each_member") : undefined;
  const remaining = Math.min(each?.value ?? Number.POSITIVE_INFINITY, limit.operator_value ?? Number.POSITIVE_INFINITY);
  if (remaining === Number.POSITIVE_INFINITY) {
    return "Nothing limits it then. It takes effect within 5 seconds.";
  }
  const whose = limit.operator_value === remaining ? "the operator of the server" : "each member";
  return `The limit of ${whose} applies then: ${formatAmount(limit.name, remaining)}. It takes effect within 5 seconds.`;
}

export const UNITS = { bytes: 1, MB: 1024 ** 2, GB: 1024 ** 3 } as const;
type Unit = keyof typeof UNITS;
const HIGHEST = 2 ** 53;

export const limitSchema = z
  .object({
    name: z.enum(LIMIT_NAMES),
    scope: z.enum(["organisation", "each_member", "member"]),
    memberId: z.string().nullable(),
    amount: z.string().trim(),
    unit: z.enum(["bytes", "MB", "GB"]),
  })
  .superRefine((values, context) => {
    const refuse = (path: string, message: string): void => {
      context.addIssue({ code: "custom", path: [path], message });
    };
    if (values.scope === "member" && values.memberId === null) {
      refuse("memberId", "Choose a member.");
    }
    const value = valueOf(values);
    if (value === null || value > HIGHEST) {
      refuse("amount", "Write a whole number, 0 or more.");
    } else if (value === 0 && values.name === "requests_per_second") {
      refuse("amount", "Write 1 or more. To lock a member out, disable it.");
    }
  });

export type LimitValues = z.infer<typeof limitSchema>;

/** The number that is sent. Null: what was typed is no number. */
export function valueOf({ name, amount, unit }: Pick<LimitValues, "name" | "amount" | "unit">): number | null {
  if (name !== "stored_bytes") {
    return /^\d+$/.test(amount) ? Number(amount) : null;
  }
  return /^\d+(\.\d+)?$/.test(amount) ? Math.round(Number(amount) * UNITS[unit]) : null;
}

/** The largest unit in which the size is a number of at most two decimals. */
export function splitBytes(bytes: number): { amount: string; unit: Unit } {
  for (const unit of ["GB", "MB"] as const) {
    const amount = bytes / UNITS[unit];
    if (amount >= 1 && Number.isInteger(amount * 100)) {
      return { amount: String(amount), unit };
    }
  }
  return { amount: String(bytes), unit: "bytes" };
}

/** The values for a limit that is selected, or for a new one. */
export function limitValues(limit: Limit | null): LimitValues {
  const name = limit?.name ?? "concurrent_turns";
  const value = limit?.own_value ?? limit?.value ?? null;
  const shown =
    value === null
      ? { amount: "", unit: "GB" as const }
      : name === "stored_bytes"
        ? splitBytes(value)
        : { amount: String(value), unit: "GB" as const };
  return { name, scope: limit?.scope ?? "organisation", memberId: limit?.member_id ?? null, ...shown };
}

export function toLimitFields(values: LimitValues): LimitFields {
  return {
    name: values.name,
    scope: values.scope,
    member_id: values.scope === "member" ? values.memberId : null,
    value: valueOf(values),
  };
}

export const LIMIT_FIELDS: FieldTable<LimitValues> = [
  ["value", "amount"],
  ["member_id", "memberId"],
  ["scope", "scope"],
  ["name", "name"],
];
