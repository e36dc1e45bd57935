// The keys of the query cache, and which of them a change in the feed makes outdated.
import type { QueryKey } from "@tanstack/react-query";

export const keys = {
  me: ["me"],
  signInMethods: ["sign-in-methods"],
  sessions: ["sessions"],
  sessionCounts: ["session-counts"],
  pinnedSessions: ["sessions", "pinned"],
  session: (id: string) => ["session", id],
  inbox: ["inbox"],
  approvals: ["approvals"],
  questions: ["questions"],
  projects: ["projects"],
  agents: ["agents"],
  environments: ["environments"],
  webhooks: ["webhooks"],
  deployments: ["deployments"],
  batches: ["batches"],
  templates: ["session-templates"],
  usage: ["usage"],
  policy: ["policy"],
  audit: ["audit"],
  health: ["health"],
  apiKeys: ["api-keys"],
  members: ["members"],
  teams: ["teams"],
  limits: ["limits"],
  notifications: ["notifications"],
} as const satisfies Record<string, QueryKey | ((id: string) => QueryKey)>;

export interface FeedChange {
  type: string;
  session_id?: string | null;
  deployment_id?: string | null;
  /** Of `session_pin.changed`. */
  member_id?: string;
  pinned_session_id?: string;
  is_pinned?: boolean;
}

const APPROVAL_TYPES = new Set(["agent.tool_use", "agent.mcp_tool_use", "user.tool_confirmation"]);

export function keysOutdatedBy(change: FeedChange): QueryKey[] {
  const found: QueryKey[] = [];
  if (change.session_id !== undefined && change.session_id !== null) {
    found.push(keys.session(change.session_id), keys.sessions);
  }
  if (change.type.startsWith("inbox")) {
    found.push(keys.inbox);
  } else if (APPROVAL_TYPES.has(change.type)) {
    found.push(keys.approvals, keys.inbox);
  } else if (change.type.startsWith("question.")) {
    found.push(keys.questions, keys.inbox);
  } else if (change.type === "session.error" || change.type.startsWith("session.status_")) {
    found.push(keys.inbox);
  } else if (change.type.startsWith("deployment")) {
    found.push(keys.deployments);
  } else if (change.type.startsWith("batch.")) {
    found.push(keys.batches);
  } else if (change.type === "session_template.changed") {
    found.push(keys.templates);
  } else if (change.type === "session_pin.changed") {
    found.push(keys.pinnedSessions);
  }
  return found;
}
