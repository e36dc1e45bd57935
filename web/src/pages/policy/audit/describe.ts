// Describes entries of the audit trail: the outcome, who or what decided, and on what. The command line says the same.
import type { AuditEntry } from "@/api/queries/policy";

type Kind = AuditEntry["kind"];

export const KIND_TITLES: Record<Kind, string> = {
  decision: "Decisions of the gate",
  answer: "Approvals and denials",
  policy: "Rules of the organisation",
  change: "Other changes of rules",
  hook: "Hooks",
  refusal: "Refused requests",
  error: "Errors of turns",
  sign_in: "Sign-ins",
  terminal: "Terminals",
};

export const KINDS = Object.keys(KIND_TITLES) as Kind[];

export const OUTCOME_TITLES = {
  allow: "allowed",
  ask: "asked",
  deny: "denied",
  edit: "edited",
  block: "blocked",
  none: "no decision",
  failed: "failed",
  retried: "retried",
} as const;
export type AuditOutcome = keyof typeof OUTCOME_TITLES;
export const AUDIT_OUTCOMES = Object.keys(OUTCOME_TITLES) as AuditOutcome[];

export function describeOutcome({ kind, outcome, content }: AuditEntry): string {
  if (kind === "policy" || kind === "change") {
    return "changed";
  }
  if (kind === "terminal") {
    return content?.["action"] === "terminal.open" ? "opened" : "attached";
  }
  if (kind === "refusal" || (kind === "sign_in" && outcome === "deny")) {
    return "refused";
  }
  return AUDIT_OUTCOMES.some((one) => one === outcome) ? OUTCOME_TITLES[outcome as AuditOutcome] : (outcome ?? "");
}

/** Whether the entry is about something that was denied or failed, needed a person, or neither. */
export function toneOf({ kind, outcome }: AuditEntry): "failed" | "waiting" | "neutral" {
  if (kind === "refusal" || outcome === "deny" || outcome === "block" || outcome === "failed") {
    return "failed";
  }
  return outcome === "ask" || outcome === "edit" || outcome === "retried" ? "waiting" : "neutral";
}

const AUTOMATIC: Record<string, string> = { clock: "timeout", turn: "server" };

/** `rule`, `hook` or `default` (a default or a built-in check) for a decision about a call; else `member`, `timeout` or
 * `server`. */
export function describeDecider({ kind, layer, content, principal }: AuditEntry): string {
  if (kind === "hook" || text(content, "hook") !== "") {
    return "hook";
  }
  if (kind === "error") {
    return "server";
  }
  if (kind === "decision") {
    return layer === null ? "default" : "rule";
  }
  return AUTOMATIC[principal ?? ""] ?? "member";
}

/** What it is about: the call, the changed thing, the request or the error. */
export function describeSubject(entry: AuditEntry): string {
  const { kind, content, tool, layer, input_summary: input } = entry;
  const field = (name: string): string => text(content, name);
  switch (kind) {
    case "policy":
      return "rules of the organisation";
    case "change":
      return join(" ", field("action") || (layer ?? ""), field("id"));
    case "terminal":
      return field("action") === "terminal.open" ? "terminal" : "terminal, to type";
    case "sign_in":
      return join(" · ", field("action"), field("method"), field("client_name"), field("address"));
    case "refusal":
      return join(" ", field("method"), field("path"));
    case "error":
      return join(" · ", field("error"), field("status").replaceAll("_", " "));
    case "hook":
      return join(" ", field("hook_event"), tool ?? "");
    case "decision":
    case "answer":
      return join(" ", tool ?? "", input ?? "(input no longer stored)");
  }
}

/** Why: the rule or the hook with its layer and reason, or the message of a person. */
export function describeReason({ kind, content, layer, input_hash: inputHash }: AuditEntry): string {
  const field = (name: string): string => text(content, name);
  if (kind === "answer") {
    const rule = field("session_rule");
    return join(
      " · ",
      inputHash === null ? "" : "with an edited input",
      rule === "" ? "" : `for this session: ${rule}`,
      field("deny_message"),
    );
  }
  if (kind === "decision" || kind === "hook") {
    return join(": ", join(" ", layer ?? "", field("hook") || field("rule")), field("reason"));
  }
  return field(kind === "refusal" ? "message" : "reason");
}

function text(content: AuditEntry["content"], name: string): string {
  const value = content?.[name];
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function join(separator: string, ...parts: string[]): string {
  return parts.filter((part) => part !== "").join(separator);
}

/** The beginning or the end of a day of the address, such as `2026-11-19`, in the time zone of the browser. */
export function timeOfDay(day: string | undefined, edge: "start" | "end"): string | undefined {
  if (day === undefined) {
    return undefined;
  }
  const time = new Date(`${day}T${edge === "start" ? "00:00:00.000" : "23:59:59.999"}`);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
