// Kind, state and duration of a step: an icon and a word, so that nothing depends on colour.
import {
  Ban,
  Check,
  CircleDashed,
  CirclePlay,
  CircleUserRound,
  GitMerge,
  MessageSquare,
  Network,
  PackageOpen,
  RotateCw,
  SkipForward,
  SquareTerminal,
  Terminal,
  Upload,
  X,
} from "lucide-react";
import type { ComponentType } from "react";

import { useNow } from "@/design/components/time";
import { cn } from "@/design/classes";
import { formatDuration } from "@/design/format";
import { describeState, needsPerson, type Step, type StepKind } from "./model";

type Icon = ComponentType<{ className?: string }>;

export const KINDS: Record<StepKind, { title: string; icon: Icon }> = {
  prompt: { title: "Prompt", icon: MessageSquare },
  shell: { title: "Shell", icon: Terminal },
  external: { title: "External", icon: PackageOpen },
  parallel: { title: "Parallel", icon: Network },
  merge: { title: "Merge", icon: GitMerge },
  push: { title: "Push", icon: Upload },
  terminal: { title: "Terminal", icon: SquareTerminal },
};

export function KindMark({ step, className }: { step: Step; className?: string }) {
  const { title, icon: Icon } = KINDS[step.kind];
  return (
    <span className={cn("inline-flex items-center gap-1.5 text-muted", className)}>
      <Icon aria-hidden className="size-4 shrink-0" />
      {step.is_message ? "Message" : title}
    </span>
  );
}

const STATES: Record<Step["state"], { icon: Icon; color: string }> = {
  pending: { icon: CircleDashed, color: "text-muted" },
  running: { icon: CirclePlay, color: "text-running" },
  completed: { icon: Check, color: "text-muted" },
  failed: { icon: X, color: "text-failed" },
  skipped: { icon: SkipForward, color: "text-muted" },
  cancelled: { icon: Ban, color: "text-muted" },
};

export function StepState({ step, className }: { step: Step; className?: string }) {
  const isWaiting = needsPerson(step);
  const { icon: Icon, color } = isWaiting
    ? { icon: CircleUserRound, color: "text-waiting" }
    : step.waiting_for === "retry"
      ? { icon: RotateCw, color: "text-muted" }
      : STATES[step.state];
  return (
    <span className={cn("inline-flex items-center gap-1.5 font-medium whitespace-nowrap", color, className)}>
      <Icon
        aria-hidden
        className={cn("size-4 shrink-0", step.state === "running" && !isWaiting && "animate-pulse-slow")}
      />
      {describeState(step)}
    </span>
  );
}

export function StepDuration({ step, className }: { step: Step; className?: string }) {
  if (step.state === "running" && step.started_at !== null) {
    return <RunningSince value={step.started_at} className={className} />;
  }
  const milliseconds = step.state === "skipped" ? null : (step.result?.duration_ms ?? span(step));
  return <span className={className}>{milliseconds === null ? "" : formatDuration(milliseconds / 1000)}</span>;
}

function RunningSince({ value, className }: { value: string; className: string | undefined }) {
  const seconds = Math.floor((useNow() - new Date(value).getTime()) / 1000);
  return <span className={className}>{formatDuration(Math.max(1, seconds))}</span>;
}

function span(step: Step): number | null {
  return step.started_at === null || step.ended_at === null
    ? null
    : new Date(step.ended_at).getTime() - new Date(step.started_at).getTime();
}
