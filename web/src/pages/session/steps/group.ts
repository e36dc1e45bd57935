// Which sessions belong to a parallel step, also while it runs and has no result yet.
import type { Session } from "@/api/session-state";
import { type GroupMember, groupMembers, type Step } from "./model";

/** Whether this session is the one that `branches: best` chose: the first that completed. */
export function isTakenOver(step: Step, member: GroupMember): boolean {
  if (step["branches"] !== "best" || step.state !== "completed") {
    return false;
  }
  return groupMembers(step).find((one) => one.outcome === "completed")?.index === member.index;
}

/** The members with their sessions. Before there is a result, they are the sessions that started with the step. */
export function membersWithSessions(
  step: Step,
  children: readonly Session[],
): { member: GroupMember; child: Session | undefined }[] {
  const members = groupMembers(step);
  const byId = new Map(children.map((child) => [child.id, child]));
  const started = sessionsOfRunningStep(step, children);
  return members.map((member) => {
    const title = member.title ?? member.name;
    const candidates = started.filter((child) => child.title === title);
    // Without distinct titles, the order is all there is.
    const running = title !== null && candidates.length === 1 ? candidates[0] : started[member.index];
    return { member, child: member.sessionId === null ? running : byId.get(member.sessionId) };
  });
}

/** A session runs one step at a time, so what was created since the step started is of its group. */
function sessionsOfRunningStep(step: Step, children: readonly Session[]): Session[] {
  const since = step.started_at;
  if (since === null || step.ended_at !== null) {
    return [];
  }
  const group = children.find((child) => child.created_at >= since)?.group_id;
  return children
    .filter((child) => child.group_id != null && child.group_id === group && child.created_at >= since)
    .sort((first, second) => (first.id < second.id ? -1 : 1));
}
