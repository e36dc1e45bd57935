// The outcome of a call or of a rule: an icon and a word.
import { Ban, Check, CircleUserRound } from "lucide-react";
import type { ComponentType } from "react";

import type { Outcome } from "@/api/queries/policy";
import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";

interface Mark {
  /** Of a rule. */
  rule: string;
  /** Of a call. */
  call: string;
  icon: ComponentType<{ className?: string }>;
  color: string;
}

export const OUTCOME_MARKS: Record<Outcome, Mark> = {
  deny: { rule: "Deny", call: "denied", icon: Ban, color: "text-failed" },
  ask: { rule: "Ask", call: "needs approval", icon: CircleUserRound, color: "text-waiting" },
  allow: { rule: "Allow", call: "allowed", icon: Check, color: "text-success" },
};

interface OutcomeMarkProps {
  outcome: Outcome;
  /** Whether it is about a rule (`Deny`) or a call (`denied`). */
  of: "rule" | "call";
  className?: string;
}

export function OutcomeMark({ outcome, of, className }: OutcomeMarkProps) {
  const { icon: Icon, color, [of]: title } = OUTCOME_MARKS[outcome];
  return (
    <span className={cn("inline-flex shrink-0 items-center gap-1.5 font-medium whitespace-nowrap", color, className)}>
      <Icon aria-hidden className="size-4 shrink-0" />
      {title}
    </span>
  );
}

/** A rule as it is written, whole. */
export function RuleText({ children, className }: { children: string; className?: string }) {
  return (
    <code className={cn("rounded-sm bg-code px-1 font-mono text-sm wrap-anywhere", className)}>
      <SafeText>{children}</SafeText>
    </code>
  );
}
