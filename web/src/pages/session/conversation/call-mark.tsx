// What happened to a call: an icon and a word.
import { Ban, Check, CircleHelp, CirclePlay, CircleUserRound, Hourglass, Square, TriangleAlert, X } from "lucide-react";
import type { ComponentType } from "react";

import { cn } from "@/design/classes";

import type { CallStatus } from "../log/tool-calls";

export const CALL_MARKS: Record<
  CallStatus,
  { title: string; icon: ComponentType<{ className?: string }>; color: string }
> = {
  running: { title: "running", icon: CirclePlay, color: "text-running" },
  waiting_approval: { title: "needs approval", icon: CircleUserRound, color: "text-waiting" },
  waiting_answer: { title: "needs an answer", icon: CircleHelp, color: "text-waiting" },
  waiting_result: { title: "waits for a result", icon: Hourglass, color: "text-muted" },
  ok: { title: "done", icon: Check, color: "text-success" },
  failed: { title: "failed", icon: X, color: "text-failed" },
  denied: { title: "denied", icon: Ban, color: "text-failed" },
  interrupted: { title: "interrupted", icon: Square, color: "text-muted" },
  unknown: { title: "outcome unknown", icon: TriangleAlert, color: "text-waiting" },
  no_result: { title: "no result", icon: Square, color: "text-muted" },
};

export function CallMark({ status }: { status: CallStatus }) {
  const { title, icon: Icon, color } = CALL_MARKS[status];
  return (
    <span className={cn("inline-flex shrink-0 items-center gap-1 text-sm", color)}>
      <Icon aria-hidden className={cn("size-3.5", status === "running" && "animate-pulse-slow")} />
      {title}
    </span>
  );
}
