// The turns beside the conversation: state, duration, tokens and cost of each, and a way to get there.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";

import { cn } from "@/design/classes";
import { formatExactTime, formatMoney, formatTokens } from "@/design/format";

import { type Turn, TURN_TITLES } from "../log/turns";
import { TurnDuration } from "./turn-header";
import { TurnMark } from "./turn-mark";

const ROW = 44;

interface Props {
  turns: readonly Turn[];
  current: string | null;
  onSelect: (turn: Turn) => void;
}

export function Timeline({ turns, current, onSelect }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  // oxlint-disable-next-line react/incompatible-library -- the React compiler is not used
  const list = useVirtualizer({
    count: turns.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (index) => turns[index]?.id ?? index,
    overscan: 10,
  });
  const index = turns.findIndex((turn) => turn.id === current);
  useEffect(() => {
    if (index >= 0) {
      list.scrollToIndex(index, { align: "auto" });
    }
  }, [index, list]);
  return (
    <nav aria-label="Turns" className="flex w-48 shrink-0 flex-col border-r max-lg:hidden">
      <h2 className="px-4 pt-3 pb-1 text-xs font-medium text-muted">Turns</h2>
      {turns.length === 0 && <p className="px-4 py-1 text-sm text-muted">None yet.</p>}
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        <ol className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map(({ index: at, start, key }) => {
            const turn = turns[at];
            return turn === undefined ? null : (
              <li key={key} className="absolute inset-x-0 top-0" style={{ transform: `translateY(${start}px)` }}>
                <button
                  type="button"
                  aria-current={turn.id === current ? "true" : undefined}
                  title={`${TURN_TITLES[turn.state]}, ${formatExactTime(new Date(turn.startedAt))}`}
                  className={cn(
                    "flex h-11 w-full items-center gap-2 rounded-md px-2 text-left text-sm hover:bg-hover",
                    turn.id === current && "bg-selected",
                  )}
                  onClick={() => {
                    onSelect(turn);
                  }}
                >
                  <TurnMark state={turn.state} />
                  <span className="min-w-0 flex-1">
                    <span className="flex justify-between gap-2">
                      <span className="font-medium">{turn.number ?? "·"}</span>
                      <TurnDuration turn={turn} />
                    </span>
                    <span className="flex justify-between gap-2 text-xs text-muted">
                      <span>{turn.tokens > 0 ? formatTokens(turn.tokens) : "–"}</span>
                      <span>{formatMoney(turn.cost)}</span>
                    </span>
                  </span>
                </button>
              </li>
            );
          })}
        </ol>
      </div>
    </nav>
  );
}
