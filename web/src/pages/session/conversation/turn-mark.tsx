// The state of a turn as an icon with its word for screen readers.
import { Check, CirclePlay, CircleUserRound, Gauge, Square, X } from "lucide-react";
import type { ComponentType } from "react";

import { cn } from "@/design/classes";

import { TURN_TITLES, type TurnState } from "../log/turns";

const MARKS: Record<TurnState, { icon: ComponentType<{ className?: string }>; color: string }> = {
  running: { icon: CirclePlay, color: "text-running animate-pulse-slow" },
  waiting: { icon: CircleUserRound, color: "text-waiting" },
  completed: { icon: Check, color: "text-muted" },
  failed: { icon: X, color: "text-failed" },
  interrupted: { icon: Square, color: "text-muted" },
  limit_reached: { icon: Gauge, color: "text-waiting" },
};

export function TurnMark({ state }: { state: TurnState }) {
  const { icon: Icon, color } = MARKS[state];
  return (
    <span className="shrink-0" title={TURN_TITLES[state]}>
      <Icon aria-hidden className={cn("size-3.5", color)} />
      <span className="sr-only">{TURN_TITLES[state]}</span>
    </span>
  );
}
