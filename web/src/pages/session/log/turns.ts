// The turns of a session: duration, tokens, cost and state, and which items belong to which turn.
import type { components } from "@/api/schema";

import type { LogEvent } from "./events";
import type { LogItem } from "./items";

export type TurnRecord = components["schemas"]["Turn"];
export type TurnState = "running" | "waiting" | "completed" | "failed" | "interrupted" | "limit_reached";

export interface Turn {
  id: string;
  /** Counted from 1. Null while older turns are not loaded. */
  number: number | null;
  firstPosition: number;
  inputEventId: string;
  state: TurnState;
  startedAt: number;
  endedAt: number | null;
  tokens: number;
  cost: number | null;
  /** How many workers were lost during it. */
  lostWorkers: number;
  error: string | null;
}

const STATES: Record<string, TurnState> = {
  running: "running",
  awaiting_tool_results: "waiting",
  completed: "completed",
  failed: "failed",
  interrupted: "interrupted",
  limit_reached: "limit_reached",
  timed_out: "limit_reached",
};

export const TURN_TITLES: Record<TurnState, string> = {
  running: "running",
  waiting: "waits",
  completed: "done",
  failed: "failed",
  interrupted: "interrupted",
  limit_reached: "stopped at a limit",
};

/** The turns, oldest first. `isComplete`: whether the first turn of the session is among the records. */
export function readTurns(records: readonly TurnRecord[], isComplete: boolean): Turn[] {
  const byId = new Map(records.map((record) => [record.id, record]));
  return [...byId.values()]
    .toSorted((one, other) => one.first_seq - other.first_seq)
    .map((record, index) => {
      const { metrics } = record.result;
      const state = STATES[record.status] ?? "running";
      return {
        id: record.id,
        number: isComplete ? index + 1 : null,
        firstPosition: record.first_seq,
        inputEventId: record.input_event_id,
        state: state === "completed" && !record.result.success ? "failed" : state,
        startedAt: Date.parse(record.started_at ?? record.created_at),
        endedAt: record.ended_at === null ? null : Date.parse(record.ended_at),
        tokens: record.usage.input_tokens + record.usage.output_tokens,
        cost: record.usage.cost_microusd ?? null,
        lostWorkers: Math.max(0, record.attempt - 1 - metrics.retries - metrics.handovers),
        error: record.result.error_message,
      };
    });
}

/** Seconds from the start to the end, or until now. */
export function turnSeconds(turn: Pick<Turn, "startedAt" | "endedAt">, now: number): number {
  return Math.max(0, ((turn.endedAt ?? now) - turn.startedAt) / 1000);
}

/** The turn of each item, by index. Items before the first known turn, and messages in the queue, have none. */
export function assignTurns(items: readonly LogItem[], turns: readonly Turn[]): (Turn | null)[] {
  let current = -1;
  return items.map((item) => {
    if (item.kind === "user" && item.isQueued) {
      return null;
    }
    for (let next = turns[current + 1]; next !== undefined && startsTurn(item.event, next);) {
      current += 1;
      next = turns[current + 1];
    }
    return turns[current] ?? null;
  });
}

/** A message has the position where it was accepted, so its id decides. */
function startsTurn(event: LogEvent, turn: Turn): boolean {
  return event.id === turn.inputEventId || (!event.type.startsWith("user.") && event.position >= turn.firstPosition);
}
