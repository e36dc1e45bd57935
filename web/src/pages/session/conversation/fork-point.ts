// Where a fork begins: a message of a person is replaced, everything else is the last event that the fork has.
import { itemBefore, lastEventOf, type LogItem } from "../log/items";

export interface ForkPoint {
  /** The last event that the fork has. Null: the newest one. */
  eventId: string | null;
  /** What that is, in words. */
  place: string;
  /** The message that the fork begins with, to be changed. */
  text: string;
}

export const NEWEST_EVENT: ForkPoint = { eventId: null, place: "after its newest event", text: "" };

export function forkPoint(items: readonly LogItem[], item: LogItem): ForkPoint {
  const before = item.kind === "user" && item.attachments.length === 0 ? itemBefore(items, item) : undefined;
  return item.kind === "user" && before !== undefined
    ? { eventId: lastEventOf(before).id, place: "before this message", text: item.text }
    : { eventId: lastEventOf(item).id, place: "right after this event", text: "" };
}
