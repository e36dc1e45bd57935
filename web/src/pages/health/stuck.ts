// Groups sessions that do not move by the reason, and says what to do about each.
import type { Backend } from "@/api/queries/new-session";
import type { ListedSession } from "@/api/queries/sessions";

export type StuckReason = NonNullable<ListedSession["activity"]["reason"]> | "queued";

export interface StuckGroup {
  /** Unique among the groups. */
  id: string;
  reason: StuckReason;
  /** Why they wait, as in "2 sessions wait: …". */
  cause: string;
  help: string;
  sessions: ListedSession[];
}

const CAUSES: Record<StuckReason, { cause: string; help: string }> = {
  no_worker: { cause: "no worker is running", help: "Start a worker with `footplate worker`, or ask the operator." },
  no_backend: {
    cause: "no worker offers the backend",
    help: "Start a worker that offers it, or ask the operator.",
  },
  worker_lost: {
    cause: "the worker was lost",
    help: "Another worker continues within seconds. If not, check the workers below.",
  },
  author_disabled: {
    cause: "the author of the next message is disabled",
    help: "An administrator can hand over the work with `footplate members disable AUTHOR --hand-over-to MEMBER`.",
  },
  turn_limit: {
    cause: "the limit on concurrent turns is reached",
    help: "They start when other turns end. `footplate limits` shows the limits.",
  },
  sessions: { cause: "the child sessions do not end", help: "Open the child sessions to see what they wait for." },
  queued: {
    cause: "no worker has started the work for more than a minute",
    help: "All workers may be busy. Add a worker, or raise the number of turns of each.",
  },
};

/** The most urgent reason first. */
const ORDER = Object.keys(CAUSES) as StuckReason[];

export function groupStuckSessions(
  sessions: readonly ListedSession[],
  backends: readonly Pick<Backend, "name" | "is_default" | "workers">[],
): StuckGroup[] {
  const groups = new Map<string, StuckGroup>();
  for (const session of sessions) {
    const reason = session.activity.reason ?? "queued";
    const backend = reason === "no_backend" ? missingBackend(session, backends) : null;
    const id = backend === null ? reason : `${reason} ${backend}`;
    const group = groups.get(id);
    if (group === undefined) {
      const { cause, help } = CAUSES[reason];
      groups.set(id, {
        id,
        reason,
        cause: backend === null ? cause : `no worker offers ${backend}`,
        help,
        sessions: [session],
      });
    } else {
      group.sessions.push(session);
    }
  }
  return [...groups.values()].sort(
    (one, other) => ORDER.indexOf(one.reason) - ORDER.indexOf(other.reason) || one.id.localeCompare(other.id),
  );
}

/** The session's backend, unless a worker offers it: a message can choose another one, whose name is not known here. */
function missingBackend(
  session: ListedSession,
  backends: readonly Pick<Backend, "name" | "is_default" | "workers">[],
): string | null {
  const name = session.backend ?? backends.find((each) => each.is_default)?.name;
  return name === undefined || (backends.find((each) => each.name === name)?.workers ?? 0) > 0 ? null : name;
}

export function countSessions(count: number): string {
  return count === 1 ? "1 session waits" : `${count.toLocaleString("en-US")} sessions wait`;
}
