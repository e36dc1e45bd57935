// Shows whether the page is up to date.
import { useFeedState } from "../api/feed";
import { cn } from "../design/classes";
import { Tooltip } from "../design/components/tooltip";
import { formatClock } from "../design/format";

const STATES = {
  live: { title: "live", dot: "bg-success", hint: () => "Changes appear as they happen." },
  catching_up: {
    title: "catching up",
    dot: "bg-waiting",
    hint: () => "The connection was lost. What you missed is being loaded.",
  },
  offline: {
    title: "offline",
    dot: "bg-failed",
    hint: (since: number) => `What you see is from ${formatClock(new Date(since))}. The page connects again by itself.`,
  },
} as const;

export function LiveState() {
  const { state, since } = useFeedState();
  const { title, dot, hint } = STATES[state];
  return (
    <Tooltip content={hint(since)}>
      <button
        type="button"
        className="flex h-8 items-center gap-1.5 rounded-md px-2 text-sm text-muted hover:bg-hover"
        data-feed-state={state}
      >
        <span aria-hidden className={cn("size-2 rounded-full", dot)} />
        <span role="status">{title}</span>
      </button>
    </Tooltip>
  );
}
