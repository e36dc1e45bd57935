// What the page keeps of a session: 100,000 complete ones, each with a copy of its agent, would not fit in memory.
import type { ListedSession } from "@/api/queries/sessions";
import { describeActivity, type Session, type SessionState } from "@/api/session-state";

export interface SessionRow {
  id: string;
  title: string;
  state: SessionState;
  /** What it does, or why it does not move. */
  activity: string;
  /** In milliseconds. Null: it is at rest. */
  since: number | null;
  projects: string;
  agent: string;
  harness: string | null;
  ownerId: string | null;
  ownerName: string | null;
  tokens: number;
  cost: number | null;
  createdAt: string;
  isPinned: boolean;
  isFork: boolean;
  parentId: string | null;
  hasEnded: boolean;
  /** Orders rows as the server does. */
  position: string;
}

export function toRow(session: ListedSession | Session): SessionRow {
  const { activity, usage } = session;
  return {
    id: session.id,
    title: firstLine(session.title ?? "") || "Untitled",
    state: session.state,
    activity: describe(session),
    since: activity.since === null ? null : Date.parse(activity.since),
    projects: session.projects.map((project) => project.name ?? project.id).join(", "),
    agent: session.agent.name,
    harness: session.agent.harness ?? null,
    ownerId: session.owner?.id ?? null,
    ownerName: session.owner?.name ?? null,
    tokens: usage.input_tokens + usage.output_tokens,
    cost: usage.cost_microusd ?? null,
    createdAt: session.created_at,
    isPinned: "is_pinned" in session && session.is_pinned === true,
    isFork: session.forked_from !== null && session.forked_from !== undefined,
    parentId: session.parent_id ?? null,
    hasEnded: session.end !== null && session.end !== undefined,
    position: positionOf(session.created_at, session.id),
  };
}

function describe(session: ListedSession | Session): string {
  const { activity } = session;
  if (activity.message !== null) {
    return firstLine(activity.message);
  }
  // The state "done" already says so.
  if (activity.state === "completed") {
    return "";
  }
  const outcome = session.end?.outcome === "completed" ? null : session.end?.outcome;
  const reason = activity.state === "ended" ? (session.end?.reason ?? outcome) : null;
  return reason === null || reason === undefined ? describeActivity(activity) : `ended: ${reason}`;
}

const LONGEST = 300;

function firstLine(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

/** Compares like (created_at, id). The server omits a fraction of zero. */
export function positionOf(createdAt: string, id: string): string {
  const fraction = /\.(\d+)/.exec(createdAt)?.[1] ?? "";
  return `${createdAt.slice(0, 19)}.${fraction.padEnd(6, "0")} ${id}`;
}
