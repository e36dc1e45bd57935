// The state of a schedule and the outcome of a run: an icon and a word.
import { useQuery } from "@tanstack/react-query";
import { Archive, CalendarClock, Hand, Pause, SkipForward, Trash2, X } from "lucide-react";

import { ApiError } from "@/api/errors";
import type { Schedule, ScheduleRun } from "@/api/queries/schedules";
import { sessionQuery } from "@/api/queries/sessions";
import { Mark } from "@/design/components/mark";
import { Skeleton } from "@/design/components/skeleton";
import { State } from "@/design/components/state";

export function ScheduleState({ schedule }: { schedule: Schedule }) {
  if (schedule.archived_at !== null) {
    return <Mark icon={Archive} text="archived" />;
  }
  if (schedule.status === "paused") {
    const hasFailed = schedule.paused_reason?.["type"] === "error";
    return <Mark icon={Pause} text="paused" className={hasFailed ? "text-failed" : undefined} />;
  }
  return schedule.schedule === null ? (
    <Mark icon={Hand} text="on request" />
  ) : (
    <Mark icon={CalendarClock} text="active" className="text-running" />
  );
}

/** What became of a run: the state of its session, or why it has none. */
export function RunOutcome({ run }: { run: ScheduleRun }) {
  if (run.skipped) {
    return <Mark icon={SkipForward} text="skipped" title={run.error?.message} />;
  }
  return run.session_id === null ? (
    <Mark icon={X} text="not started" className="text-failed" title={run.error?.message} />
  ) : (
    <SessionOutcome sessionId={run.session_id} />
  );
}

function SessionOutcome({ sessionId }: { sessionId: string }) {
  const { data, error } = useQuery({ ...sessionQuery(sessionId), retry: false });
  if (data !== undefined) {
    return <State state={data.state} />;
  }
  if (error instanceof ApiError && error.status === 404) {
    return <Mark icon={Trash2} text="deleted" title="Its session was deleted, or is hidden from you." />;
  }
  return error === null ? <Skeleton className="h-3 w-16" /> : <span className="text-muted">unknown</span>;
}
