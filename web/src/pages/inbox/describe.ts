// Words and values that the page derives from an item.
import { CircleHelp, CircleX, GitMerge, type LucideIcon, ShieldQuestion } from "lucide-react";

import type { InboxItem, InboxKind } from "@/api/contract";
import { splitHidden } from "@/design/text/safe-text";

type Approval = NonNullable<InboxItem["approval"]>;

export const KINDS: Record<InboxKind, { title: string; plural: string; icon: LucideIcon; color: string }> = {
  approval: { title: "Approval", plural: "Approvals", icon: ShieldQuestion, color: "text-waiting" },
  question: { title: "Question", plural: "Questions", icon: CircleHelp, color: "text-waiting" },
  failure: { title: "Failure", plural: "Failures", icon: CircleX, color: "text-failed" },
  merge_conflict: { title: "Merge conflict", plural: "Merge conflicts", icon: GitMerge, color: "text-failed" },
};

/** Names of tools in rules, where they differ from those of the API. */
const RULE_NAMES: Record<string, string> = {
  bash: "Bash",
  read: "Read",
  write: "Write",
  edit: "Edit",
  glob: "Glob",
  grep: "Grep",
  web_fetch: "WebFetch",
  web_search: "WebSearch",
  ask_user: "AskUserQuestion",
};

const LAYERS: Record<string, string> = {
  organisation: "of the organisation",
  project: "of the project",
  agent: "of the agent",
  session: "of this session",
  deployment: "of the schedule",
};

export function describeLayer(layer: string): string {
  return LAYERS[layer] ?? `of the layer ${layer}`;
}

export function readPermission(approval: Approval): {
  rule: string | null;
  hook: string | null;
  layer: string | null;
  reason: string | null;
} {
  const text = (name: string): string | null => {
    const value = approval.permission?.[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  return { rule: text("rule"), hook: text("hook"), layer: text("layer"), reason: text("reason") };
}

/** A rule that allows this call for the session: the exact command, or the tool. Null if a rule or a hook requires the
 * approval, because a rule of the session does not override it. The command line suggests the same. */
export function suggestRule(approval: Approval): string | null {
  const { rule, hook } = readPermission(approval);
  if (rule !== null || hook !== null || approval.name === null) {
    return null;
  }
  if (approval.mcp_server_name !== null) {
    return `mcp__${approval.mcp_server_name}__${approval.name}`;
  }
  const command = approval.input?.["command"];
  if (approval.name === "bash") {
    return typeof command === "string" && !command.includes("*") && isPrintable(command) ? `Bash(${command})` : null;
  }
  return RULE_NAMES[approval.name] ?? approval.name;
}

function isPrintable(text: string): boolean {
  return !/[\n\t]/.test(text) && countHidden(text) === 0;
}

export function countHidden(value: unknown): number {
  if (typeof value === "string") {
    return splitHidden(value).filter((part) => part.mark !== null).length;
  }
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).reduce((sum, [name, one]) => sum + countHidden(name) + countHidden(one), 0);
  }
  return 0;
}

/** What the list shows of an item: the command, the question, or what went wrong. */
export function describeItem(item: InboxItem): string {
  const command = item.approval?.input?.["command"];
  if (typeof command === "string") {
    return command;
  }
  return item.failure?.message ?? item.title;
}

/** Whether everything that would run is here, so that a person can decide. */
export function isWhole(approval: Approval): boolean {
  return approval.input !== null && approval.display?.whole !== false;
}

/** Tomorrow at nine, and similar moments, for snoozing. */
export function snoozeChoices(now: Date): { label: string; until: Date }[] {
  const tomorrow = new Date(now);
  tomorrow.setDate(now.getDate() + 1);
  tomorrow.setHours(9, 0, 0, 0);
  const monday = new Date(tomorrow);
  monday.setDate(now.getDate() + ((8 - now.getDay()) % 7 || 7));
  return [
    { label: "For 1 hour", until: new Date(now.getTime() + 3_600_000) },
    { label: "For 4 hours", until: new Date(now.getTime() + 4 * 3_600_000) },
    { label: "Until tomorrow, 9:00", until: tomorrow },
    { label: "Until Monday, 9:00", until: monday },
  ];
}
