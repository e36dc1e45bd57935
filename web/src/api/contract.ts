// Types of routes that the generated schema does not contain. When a route is in the schema, use the schema's type.
import type { components } from "./schema";

export interface Principal {
  type: "principal";
  id: string;
  kind: string;
  name: string;
  email?: string | null;
  role: string;
  organisation_id: string;
  teams: { id: string; name: string }[];
  csrf_token: string | null;
  expires_at: string | null;
}

export interface SignInMethods {
  type: "sign_in_methods";
  api_key: boolean;
  oidc: { name: string } | null;
}

export interface Listing<T> {
  data: T[];
  next_page: string | null;
}

export type InboxKind = "approval" | "question" | "failure" | "merge_conflict";
export type InboxView = "needs_you" | "mine" | "snoozed";

export interface InboxItem {
  type: "inbox_item";
  id: string;
  kind: InboxKind;
  session: {
    id: string;
    title: string | null;
    project_id: string | null;
    agent_name: string | null;
    parent_session_id: string | null;
  };
  thread_id: string | null;
  turn_number: number | null;
  title: string;
  created_at: string;
  assignee: { id: string; name: string } | null;
  snoozed_until: string | null;
  approval: components["schemas"]["Approval"] | null;
  question: components["schemas"]["Question"] | null;
  failure: { code: string; title: string; message: string; turn_id: string | null } | null;
  merge_conflict: { branch: string; files: string[] } | null;
}

export interface InboxCounts {
  needs_you: number;
  mine: number;
  snoozed: number;
}

export interface SessionCounts {
  type: "session_counts";
  total: number;
  states: Record<"running" | "needs_you" | "queued" | "paused" | "failed" | "done", number>;
}

export interface SessionTemplate {
  type: "session_template";
  id: string;
  name: string;
  description: string | null;
  session: Record<string, unknown>;
  archived_at: string | null;
}

export interface SessionComment {
  id: string;
  turn_id: string | null;
  path: string;
  side: "old" | "new";
  start_line: number;
  end_line: number;
  body: string;
  sent_event_id: string | null;
}
