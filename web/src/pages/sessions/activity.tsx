// What a session does now, or why it does not move, and since when.
import { useNow } from "@/design/components/time";
import { cn } from "@/design/classes";
import { formatClock, formatDuration, formatExactTime } from "@/design/format";
import { SafeText } from "@/design/text/text";

import type { SessionRow } from "./rows";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

interface Props {
  row: SessionRow;
  className?: string;
}

export function Activity({ row, className }: Props) {
  return (
    <span
      className={cn("flex min-w-0 gap-1.5", row.state === "needs_you" ? "text-text" : "text-muted", className)}
      title={row.activity}
    >
      <SafeText className="truncate">{row.activity.replace(/(?<!\.)\.$/, "")}</SafeText>
      {row.since !== null && <Since state={row.state} since={row.since} />}
    </span>
  );
}

/** `12 s` while it runs, which counts up; `since 14:02` while it waits. */
function Since({ state, since }: { state: SessionRow["state"]; since: number }) {
  const isRunning = state === "running";
  const now = useNow(isRunning ? 1000 : MINUTE_MS);
  const time = new Date(since);
  const age = now - since;
  const text = isRunning
    ? formatDuration(Math.max(1, Math.floor(age / 1000)))
    : age < DAY_MS
      ? `since ${formatClock(time)}`
      : `for ${formatDuration(age / 1000)}`;
  return (
    <time dateTime={time.toISOString()} title={formatExactTime(time)} className="shrink-0 whitespace-nowrap text-muted">
      {text}
    </time>
  );
}
