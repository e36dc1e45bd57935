// The thin line at which a turn begins: its number, state, duration, tokens and cost.
import { memo } from "react";

import { useNow } from "@/design/components/time";
import { cn } from "@/design/classes";
import { formatDuration, formatExactTime, formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";

import { type Turn, TURN_TITLES, turnSeconds } from "../log/turns";
import { TurnMark } from "./turn-mark";

export const TurnHeader = memo(function TurnHeader({ turn, isMarked }: { turn: Turn; isMarked: boolean }) {
  return (
    <div data-turn={turn.id} className={cn("pt-4 pb-1", isMarked && "text-accent")}>
      <div className="flex items-center gap-2 text-sm whitespace-nowrap text-muted">
        <TurnMark state={turn.state} />
        <h2
          className={cn("font-medium text-text", isMarked && "text-accent")}
          title={formatExactTime(new Date(turn.startedAt))}
        >
          Turn{turn.number === null ? "" : ` ${turn.number}`}
        </h2>
        {turn.state !== "completed" && <span>{TURN_TITLES[turn.state]}</span>}
        <span aria-hidden className={cn("h-px min-w-4 flex-1", isMarked ? "bg-accent" : "bg-line")} />
        <TurnDuration turn={turn} />
        {turn.tokens > 0 && <span>{formatTokens(turn.tokens)} tokens</span>}
        {turn.cost !== null && <span>{formatMoney(turn.cost)}</span>}
      </div>
      {turn.lostWorkers > 0 && (
        <p className="text-sm text-muted">
          {turn.lostWorkers === 1
            ? "A worker was lost; another one continued the turn."
            : `${turn.lostWorkers} workers were lost; others continued the turn.`}
        </p>
      )}
      {turn.state === "failed" && turn.error !== null && turn.number === null && (
        <SafeText className="text-sm text-failed">{turn.error}</SafeText>
      )}
    </div>
  );
});

export function TurnDuration({ turn, className }: { turn: Turn; className?: string }) {
  const isOpen = turn.endedAt === null;
  const now = useNow(isOpen ? 1000 : 3_600_000);
  const seconds = turnSeconds(turn, now);
  return <span className={className}>{isOpen && seconds < 1 ? "0 s" : formatDuration(seconds)}</span>;
}
