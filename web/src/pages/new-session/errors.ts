// Finds the field of the form that an error of the server is about.
import { ApiError } from "@/api/errors";

export type FieldName =
  | "prompt"
  | "project"
  | "agent"
  | "version"
  | "attempts"
  | "check"
  | "title"
  | "environment"
  | "backend"
  | "mode"
  | "visibility"
  | "maxIterations"
  | "timeout"
  | "allow"
  | "ask"
  | "deny";

export type FieldErrors = Partial<Record<FieldName, string>>;

/** By the beginning of the server's name of the field. The first one that fits counts. */
const FIELDS: readonly [RegExp, FieldName][] = [
  [/^agent.*max_iterations/, "maxIterations"],
  [/^agent.*timeout_seconds/, "timeout"],
  [/^agent.*version/, "version"],
  [/^agent/, "agent"],
  [/^permissions\.allow/, "allow"],
  [/^permissions\.ask/, "ask"],
  [/^permissions\.deny/, "deny"],
  [/^project_ids/, "project"],
  [/^environment_id/, "environment"],
  [/^backend/, "backend"],
  [/^title/, "title"],
  [/^mode/, "mode"],
  [/^(visibility|team_id)/, "visibility"],
  [/^steps.*\.check/, "check"],
  [/^(initial_events|steps)/, "prompt"],
];

/** Fields below "More options". */
export const MORE_FIELDS: readonly FieldName[] = [
  "title",
  "version",
  "environment",
  "backend",
  "mode",
  "visibility",
  "maxIterations",
  "timeout",
  "allow",
  "ask",
  "deny",
];

export function toFieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ApiError) || error.field === null) {
    return {};
  }
  const path = error.field.replace(/^session\./, "");
  const name = FIELDS.find(([pattern]) => pattern.test(path))?.[1];
  return name === undefined ? {} : { [name]: error.message };
}
