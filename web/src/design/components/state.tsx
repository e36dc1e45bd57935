// The state of a session: an icon and a word, so that no state depends on its colour.
import { Check, CircleDashed, CirclePlay, CircleUserRound, Pause, X } from "lucide-react";
import type { ComponentType } from "react";

import type { SessionState } from "../../api/session-state";
import { cn } from "../classes";

const STATES: Record<SessionState, { title: string; icon: ComponentType<{ className?: string }>; color: string }> = {
  running: { title: "running", icon: CirclePlay, color: "text-running" },
  needs_you: { title: "needs you", icon: CircleUserRound, color: "text-waiting" },
  queued: { title: "queued", icon: CircleDashed, color: "text-muted" },
  paused: { title: "paused", icon: Pause, color: "text-muted" },
  failed: { title: "failed", icon: X, color: "text-failed" },
  done: { title: "done", icon: Check, color: "text-muted" },
};

export function stateTitle(state: SessionState): string {
  return STATES[state].title;
}

interface StateProps {
  state: SessionState;
  /** Only the icon; its name is for screen readers. */
  iconOnly?: boolean;
  className?: string;
}

export function State({ state, iconOnly = false, className }: StateProps) {
  const { title, icon: Icon, color } = STATES[state];
  return (
    <span
      className={cn("inline-flex shrink-0 items-center gap-1.5 font-medium whitespace-nowrap", color, className)}
      title={iconOnly ? title : undefined}
    >
      <Icon aria-hidden className={cn("size-4", state === "running" && "animate-pulse-slow")} />
      <span className={iconOnly ? "sr-only" : undefined}>{title}</span>
    </span>
  );
}
