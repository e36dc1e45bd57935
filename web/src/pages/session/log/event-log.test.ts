import { describe, expect, it } from "vitest";

import { EventLog, orderEvents } from "./event-log";
import type { LogEvent } from "./events";

function event(id: string, type: string, position: number, second: number | null): LogEvent {
  return {
    id,
    type,
    position,
    processed_at: second === null ? null : new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
  };
}

describe("orderEvents", () => {
  it("puts a message where it was processed, not where it was accepted", () => {
    const ordered = orderEvents([
      event("second", "user.message", 2, 30),
      event("first", "user.message", 1, 1),
      event("running", "session.status_running", 3, 1),
      event("idle", "session.status_idle", 4, 20),
      event("again", "session.status_running", 6, 30),
    ]);
    expect(ordered.map(({ id }) => id)).toEqual(["first", "running", "idle", "second", "again"]);
  });

  it("puts messages that wait at the end", () => {
    const ordered = orderEvents([event("queued", "user.message", 2, null), event("text", "agent.message", 3, 5)]);
    expect(ordered.map(({ id }) => id)).toEqual(["text", "queued"]);
  });

  it("keeps a message that is newer than everything else last", () => {
    const ordered = orderEvents([event("text", "agent.message", 3, 5), event("new", "user.message", 7, 6)]);
    expect(ordered.map(({ id }) => id)).toEqual(["text", "new"]);
  });
});

describe("EventLog", () => {
  it("has each event once, in its latest state", () => {
    const log = new EventLog();
    log.add([event("a", "user.message", 1, null)]);
    log.add([event("a", "user.message", 2, 3), event("b", "agent.message", 4, 4)]);
    log.add([event("a", "user.message", 1, null), event("b", "agent.message", 4, 4)]);
    expect(log.list().map(({ id, position }) => [id, position])).toEqual([
      ["a", 2],
      ["b", 4],
    ]);
    expect(log.lastPosition).toBe(4);
  });
});
