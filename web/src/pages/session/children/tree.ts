// Arranges the sessions below a session: by the groups in which they were started, and by who started them.
import type { components } from "@/api/schema";
import { describeActivity, type Session } from "@/api/session-state";
import { groupMembers, shortLabel, type Step, stepLabel } from "../steps/model";

export type Thread = components["schemas"]["Thread"];

export interface ChildGroup {
  id: string;
  members: Session[];
  /** The step that started it. Null: the agent did, with a tool. */
  step: Step | null;
}

/** What the session does or why it does not move, as the server words it. */
export function activityText(session: Session): string {
  if (session.end != null) {
    return session.end.reason ?? (session.end.outcome === "completed" ? "" : session.end.outcome);
  }
  // The state "done" already says so.
  if (session.activity.state === "completed") {
    return "";
  }
  return session.activity.message ?? describeActivity(session.activity);
}

export function hasEnded(session: Session): boolean {
  return session.end != null || session.archived_at !== null;
}

/** Groups in the order in which they were started, their members in the order in which they were listed in the step. */
export function arrangeGroups(children: readonly Session[], steps: readonly Step[]): ChildGroup[] {
  const groups = new Map<string, ChildGroup>();
  for (const child of children) {
    const id = child.group_id ?? child.id;
    const group = groups.get(id) ?? { id, members: [], step: null };
    group.members.push(child);
    groups.set(id, group);
  }
  const ordered = [...groups.values()].sort((first, second) => started(first).localeCompare(started(second)));
  for (const group of ordered) {
    group.step = stepOf(group, steps);
    const names = group.step === null ? [] : groupMembers(group.step).map((member) => member.title ?? member.name);
    const place = (session: Session): number => {
      const index = names.indexOf(session.title);
      return index < 0 ? names.length : index;
    };
    group.members.sort((first, second) => place(first) - place(second) || (first.id < second.id ? -1 : 1));
  }
  return ordered;
}

function started(group: ChildGroup): string {
  return group.members[0]?.created_at ?? "";
}

function stepOf(group: ChildGroup, steps: readonly Step[]): Step | null {
  const ids = new Set(group.members.map((member) => member.id));
  const parallel = steps.filter((step) => step.kind === "parallel" && step.started_at !== null);
  const named = parallel.find((step) => groupMembers(step).some((member) => ids.has(member.sessionId ?? "")));
  const running = parallel.find((step) => step.ended_at === null && started(group) >= (step.started_at ?? ""));
  return named ?? running ?? null;
}

/** The session whose files the parent took over, if the group was one for the best. */
export function findChosen(group: ChildGroup): string | null {
  const { step } = group;
  if (step?.state !== "completed" || step["branches"] !== "best") {
    return null;
  }
  return groupMembers(step).find((member) => member.outcome === "completed")?.sessionId ?? null;
}

/** What came of the group, or what it waits for. */
export function describeGroup(group: ChildGroup): string {
  const total = group.members.length;
  const ended = group.members.filter(hasEnded).length;
  const completed = group.members.filter((member) => member.end?.outcome === "completed").length;
  const rule = describeRule(group.step);
  if (ended < total) {
    return `${rule}${ended} of ${total} ended`;
  }
  const chosen = group.members.find((member) => member.id === findChosen(group));
  const result = completed === total ? `all ${total} completed` : `${completed} of ${total} completed`;
  return `${rule}${result}${chosen === undefined ? "" : `, chosen: ${shortLabel(chosen.title ?? chosen.id)}`}`;
}

function describeRule(step: Step | null): string {
  if (step?.["branches"] === "best") {
    return "best of the attempts · ";
  }
  const waits = step?.["wait_for"] === "first_success" ? "first success · " : "";
  return step?.["branches"] === "merge" ? `${waits}changes are merged · ` : waits;
}

export function groupTitle(group: ChildGroup): string {
  if (group.step !== null) {
    return `Step ${stepLabel(group.step)}`;
  }
  return group.members.length === 1 ? "Started by the agent" : `${group.members.length} sessions of the agent`;
}
