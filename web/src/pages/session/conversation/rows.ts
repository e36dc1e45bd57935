// The rows of the list: where turns begin, the items, text that is being generated, and messages that wait.
import type { LogItem } from "../log/items";
import type { Preview } from "../log/session-log";
import { assignTurns, type Turn } from "../log/turns";
import { bareId } from "../steps/model";

export type Row =
  | { kind: "turn"; key: string; turn: Turn }
  | { kind: "item"; key: string; item: LogItem; turn: Turn | null }
  | { kind: "preview"; key: string; preview: Preview };

/** `queue`: the ids of the steps that wait, in the order in which they start. */
export function buildRows(
  items: readonly LogItem[],
  previews: readonly Preview[],
  turns: readonly Turn[],
  queue: readonly string[] = [],
): Row[] {
  const assigned = assignTurns(items, turns);
  const rows: Row[] = [];
  const queued: Row[] = [];
  let current: string | null = null;
  for (const [index, item] of items.entries()) {
    const turn = assigned[index] ?? null;
    const row: Row = { kind: "item", key: item.key, item, turn };
    if (item.kind === "user" && item.isQueued) {
      queued.push(row);
      continue;
    }
    if (turn !== null && turn.id !== current) {
      current = turn.id;
      rows.push({ kind: "turn", key: turn.id, turn });
    }
    rows.push(row);
  }
  for (const preview of previews) {
    // The same key as that of the event which completes it, so that the list knows its height already.
    rows.push({ kind: "preview", key: preview.id, preview });
  }
  const places = new Map(queue.map((id, place) => [bareId(id), place]));
  return [...rows, ...queued.toSorted((one, other) => placeOf(one) - placeOf(other))];

  function placeOf(row: Row): number {
    return places.get(bareId(row.key)) ?? queue.length;
  }
}

const CHARACTERS_IN_LINE = 90;
const LINE = 20;

/** A guess of the height, until the row was measured. */
export function estimateHeight(row: Row | undefined): number {
  if (row === undefined || row.kind === "turn") {
    return 40;
  }
  if (row.kind === "preview") {
    return 60;
  }
  const { item } = row;
  if (item.kind === "agent" || item.kind === "user") {
    const lines = Math.min(
      200,
      Math.ceil(item.text.length / CHARACTERS_IN_LINE) + item.text.split("\n", 100).length / 2,
    );
    return 24 + Math.ceil(lines) * LINE;
  }
  return 32;
}
