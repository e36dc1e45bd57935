// The events of a session that are loaded: each once, in the order in which they took effect.
import { type LogEvent, timeOf } from "./events";

export class EventLog {
  #byId = new Map<string, LogEvent>();
  #ordered: readonly LogEvent[] | null = [];

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** The highest position that is loaded, from which a stream continues. */
  get lastPosition(): number {
    let last = 0;
    for (const event of this.#byId.values()) {
      last = Math.max(last, event.position);
    }
    return last;
  }

  get firstPosition(): number | null {
    let first: number | null = null;
    for (const event of this.#byId.values()) {
      first = first === null ? event.position : Math.min(first, event.position);
    }
    return first;
  }

  /** Adds events. One that is known replaces the earlier state: a message is accepted first and processed later. */
  add(events: Iterable<LogEvent>): void {
    for (const event of events) {
      const known = this.#byId.get(event.id);
      if (known === undefined || isNewer(event, known)) {
        this.#byId.set(event.id, event);
        this.#ordered = null;
      }
    }
  }

  clear(): void {
    this.#byId.clear();
    this.#ordered = [];
  }

  /** All events in order. Messages that wait in the queue are last. */
  list(): readonly LogEvent[] {
    this.#ordered ??= orderEvents([...this.#byId.values()]);
    return this.#ordered;
  }
}

function isNewer(event: LogEvent, known: LogEvent): boolean {
  if ((event.processed_at === null) !== (known.processed_at === null)) {
    return event.processed_at !== null;
  }
  return event.position > known.position;
}

/** A list has a message at the position where it was accepted. It belongs where it was processed, which may be many
 * turns later. */
export function orderEvents(events: readonly LogEvent[]): LogEvent[] {
  const sorted = events.toSorted((one, other) => one.position - other.position);
  const fixed: LogEvent[] = [];
  const inputs: LogEvent[] = [];
  const queued: LogEvent[] = [];
  for (const event of sorted) {
    if (!event.type.startsWith("user.")) {
      fixed.push(event);
    } else {
      (event.processed_at === null ? queued : inputs).push(event);
    }
  }
  const ordered: LogEvent[] = [];
  let next = 0;
  // Inputs in the order of processing. Those of one moment stay in the order of the log.
  const byTime = inputs.toSorted(
    (one, other) => (timeOf(one) ?? 0) - (timeOf(other) ?? 0) || one.position - other.position,
  );
  for (const event of fixed) {
    const time = timeOf(event) ?? Number.POSITIVE_INFINITY;
    for (let input = byTime[next]; input !== undefined; input = byTime[next]) {
      if (input.position > event.position || (timeOf(input) ?? 0) > time) {
        break;
      }
      ordered.push(input);
      next += 1;
    }
    ordered.push(event);
  }
  return [...ordered, ...byTime.slice(next), ...queued];
}
