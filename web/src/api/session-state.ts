// What a session does now, or why it does not move.
import type { components } from "./schema";

export type Session = components["schemas"]["Session"];
export type Activity = components["schemas"]["SessionActivity"];
export type SessionState = components["schemas"]["SessionState"];

export const SESSION_STATES: readonly SessionState[] = ["running", "needs_you", "queued", "paused", "failed", "done"];

type ActivityState = Activity["state"];
type StallReason = NonNullable<Activity["reason"]>;

const ACTIVITIES: Record<ActivityState, string> = {
  new: "no message yet",
  queued: "waiting for a worker",
  running: "working",
  retrying: "trying again soon",
  waiting_for_approval: "waiting for approval",
  waiting_for_answer: "waiting for an answer",
  waiting_for_result: "waiting for a result from a client",
  paused: "paused",
  stalled: "does not move",
  completed: "completed",
  failed: "failed",
  interrupted: "interrupted",
  limit_reached: "stopped at a limit",
  timed_out: "timed out",
  ended: "ended",
};

const STALLS: Record<StallReason, string> = {
  no_worker: "no worker is running",
  worker_lost: "its worker was lost; another one continues soon",
  author_disabled: "the author of the next message is disabled",
  turn_limit: "the limit on concurrent turns is reached",
  sessions: "waiting for its child sessions",
  no_backend: "no worker offers its backend",
};

/** What the session does now, or why it does not move. */
export function describeActivity(activity: Activity): string {
  return activity.reason === null ? ACTIVITIES[activity.state] : STALLS[activity.reason];
}
