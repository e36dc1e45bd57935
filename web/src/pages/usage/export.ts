// The report as a file, and as a command.
import type { UsageGrouping } from "@/api/queries/usage";

import type { UsageRow } from "./figures";
import { addDays, type Period } from "./period";

const HEADER = [
  "name",
  "cost_usd",
  "unpriced_turns",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "turns",
  "success_rate",
];
const MICRO = 1_000_000;

/** A cost that is not known is an empty field. */
export function toCsv(rows: readonly UsageRow[], grouping: UsageGrouping): string {
  const lines = rows.map((row) =>
    [
      row.key ?? "",
      row.name,
      row.cost === null ? "" : String(row.cost / MICRO),
      row.unpricedTurns,
      row.input,
      row.output,
      row.cached,
      row.turns,
      row.completed ?? "",
    ].map((value) => (typeof value === "number" ? String(value) : field(value))),
  );
  return [[grouping, ...HEADER], ...lines].map((line) => `${line.join(",")}\r\n`).join("");
}

function field(text: string): string {
  // A spreadsheet would calculate it.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The command that prints the same numbers. */
export function toCommand({ from, to }: Period, grouping: UsageGrouping): string {
  return `footplate usage --by ${grouping} --since ${from} --until ${addDays(to, 1)}`;
}

export function fileName({ from, to }: Period, grouping: UsageGrouping, type: "csv" | "json"): string {
  return `usage-by-${grouping}-${from}-to-${to}.${type}`;
}
