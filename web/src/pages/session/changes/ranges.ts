// Which changes are shown: all, those of one turn, or those of several turns; and their places in the address.
import type { components } from "@/api/schema";
import type { CHANGE_STATES } from "../search";

export type Turn = components["schemas"]["Turn"];
export type ChangeState = (typeof CHANGE_STATES)[number];

/** `kind` "turns" is from the first to the last turn, both included. */
export type DiffRange =
  { kind: "all" } | { kind: "turn"; turnId: string } | { kind: "turns"; fromId: string; toId: string };

const SEPARATOR = "..";

/** `turn=turn_1` or `turn=turn_1..turn_3`. */
export function parseRange(turn: string | undefined): DiffRange {
  if (turn === undefined) {
    return { kind: "all" };
  }
  const [fromId = "", toId] = turn.split(SEPARATOR);
  return toId === undefined || toId === "" || toId === fromId
    ? { kind: "turn", turnId: fromId }
    : { kind: "turns", fromId, toId };
}

export function formatRange(range: DiffRange): string | undefined {
  switch (range.kind) {
    case "all":
      return undefined;
    case "turn":
      return range.turnId;
    case "turns":
      return `${range.fromId}${SEPARATOR}${range.toId}`;
  }
}

/** The range as parameters of the API. `turns` is in the order in which they ran. Null: a turn is not known (yet). */
export function rangeParameters(range: DiffRange, turns: readonly Turn[]): Record<string, string | number> | null {
  if (range.kind === "all") {
    return {};
  }
  if (range.kind === "turn") {
    return { turn_id: range.turnId };
  }
  const from = turns.find((turn) => turn.id === range.fromId);
  const last = turns.findIndex((turn) => turn.id === range.toId);
  if (from === undefined || last === -1) {
    return null;
  }
  const next = turns[last + 1];
  return { from_position: from.first_seq, ...(next === undefined ? {} : { to_position: next.first_seq }) };
}

/** Only the changes of an ended turn cannot change any more. */
export function isFinal(range: DiffRange, turns: readonly Turn[]): boolean {
  return range.kind === "turn" && turns.find((turn) => turn.id === range.turnId)?.ended_at != null;
}

export interface Lines {
  side: "old" | "new";
  start: number;
  end: number;
}

/** `L12`, `L12-20`, `old:3-4`. The `L` keeps it a text in the address; without it, it is read too. */
export function parseLines(text: string | undefined): Lines | null {
  const found = /^(?:L|(old:))?(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? "");
  if (found === null) {
    return null;
  }
  const first = Number(found[2]);
  const second = Number(found[3] ?? first);
  return {
    side: found[1] === undefined ? "new" : "old",
    start: Math.min(first, second),
    end: Math.max(first, second),
  };
}

export function formatLines({ side, start, end }: Lines): string {
  return `${side === "old" ? "old:" : "L"}${start}${end === start ? "" : `-${end}`}`;
}

/** `line 12`, `lines 12–20`, `line 3 before the change`. */
export function describeLines({ side, start, end }: Lines): string {
  const numbers = start === end ? `line ${start}` : `lines ${start}–${end}`;
  return side === "old" ? `${numbers} before the change` : numbers;
}
