// The last line of the conversation: what the session does now, or why it does not move.
import type { StreamState } from "@/api/event-stream";
import { describeActivity, type Session } from "@/api/session-state";
import { cn } from "@/design/classes";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";

interface Props {
  session: Session;
  /** Whether the rows above show what it does: text that streams, or a call that runs. */
  isShown: boolean;
  streamState: StreamState;
}

const AT_REST = new Set(["new", "completed", "failed", "interrupted", "limit_reached", "timed_out", "ended"]);

export function ActivityLine({ session, isShown, streamState }: Props) {
  const { activity } = session;
  if (streamState === "offline") {
    return (
      <p role="status" className="py-2 text-sm text-waiting">
        The connection is lost. What is missing appears by itself when it is back.
      </p>
    );
  }
  if (AT_REST.has(activity.state) || isShown) {
    return null;
  }
  const isRunning = activity.state === "running";
  const tone = isRunning ? "text-muted" : activity.state.startsWith("waiting_for_") ? "text-waiting" : "text-muted";
  return (
    <p role="status" className={cn("flex items-center gap-2 py-2 text-sm", tone)}>
      <span
        aria-hidden
        className={cn("size-2 shrink-0 rounded-full", isRunning ? "animate-pulse-slow bg-running" : "bg-waiting")}
      />
      <span className="min-w-0 truncate first-letter:capitalize">
        {isRunning && activity.message !== null ? <SafeText>{activity.message}</SafeText> : describeActivity(activity)}
      </span>
      {activity.since !== null && <Time value={activity.since} short className="shrink-0 text-muted" />}
    </p>
  );
}
