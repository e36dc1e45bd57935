import { describe, expect, it } from "vitest";

import type { LogEvent } from "./events";
import { buildItems } from "./items";
import { assignTurns, readTurns, type TurnRecord, turnSeconds } from "./turns";

function record(id: string, first_seq: number, change: Partial<TurnRecord> = {}): TurnRecord {
  return {
    id,
    first_seq,
    status: "completed",
    attempt: 1,
    input_event_id: `input-${id}`,
    started_at: "2026-01-01T00:00:00Z",
    created_at: "2026-01-01T00:00:00Z",
    ended_at: "2026-01-01T00:00:12Z",
    usage: { input_tokens: 100, output_tokens: 20, cost_microusd: 4500 },
    result: { success: true, error_message: null, metrics: { retries: 0, handovers: 0 } },
    ...change,
  } as TurnRecord;
}

describe("readTurns", () => {
  it("numbers the turns when all are known, oldest first", () => {
    const turns = readTurns([record("b", 23), record("a", 2)], true);
    expect(turns.map(({ id, number }) => [id, number])).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
    expect(readTurns([record("b", 23)], false)[0]?.number).toBeNull();
  });

  it("reads duration, tokens, cost and lost workers", () => {
    const [turn] = readTurns([record("a", 1, { attempt: 3 })], true);
    expect(turn).toMatchObject({ tokens: 120, cost: 4500, lostWorkers: 2, state: "completed" });
    expect(turn === undefined ? 0 : turnSeconds(turn, 0)).toBe(12);
  });

  it("is failed if it completed without success", () => {
    const failed = { ...record("a", 1).result, success: false };
    expect(readTurns([record("a", 1, { result: failed })], true)[0]?.state).toBe("failed");
  });
});

it("assigns items to turns, a message by its id", () => {
  const event = (id: string, type: string, position: number, processed = true): LogEvent => ({
    id,
    type,
    position,
    processed_at: processed ? "2026-01-01T00:00:00Z" : null,
  });
  const items = buildItems([
    event("input-a", "user.message", 1),
    event("one", "agent.message", 4),
    event("input-b", "user.message", 2),
    event("two", "agent.message", 25),
    event("queued", "user.message", 26, false),
  ]);
  const turns = readTurns([record("a", 3), record("b", 23)], true);
  expect(assignTurns(items, turns).map((turn) => turn?.id ?? null)).toEqual(["a", "a", "b", "b", null]);
});
