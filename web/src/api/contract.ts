// Types of routes that the generated schema does not contain. When a route is in the schema, use the schema's type.
import type { components } from "./schema";

export type Principal = components["schemas"]["PrincipalResponse"];

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

export type InboxItem = components["schemas"]["InboxItemResponse"];

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
