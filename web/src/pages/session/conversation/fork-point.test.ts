import { describe, expect, it } from "vitest";

import { readEvent } from "../log/events";
import { buildItems } from "../log/items";
import { forkPoint } from "./fork-point";

function message(type: string, id: string, text: string, position: number, content: readonly unknown[] = []) {
  const processed_at = "2026-11-19T00:00:00Z";
  return readEvent({ id, type, content: [{ type: "text", text }, ...content], processed_at }, position);
}

describe("where a fork begins", () => {
  const items = buildItems([
    message("user.message", "sevt_1", "Measure it", 1),
    message("agent.message", "sevt_2", "It is slow", 2),
    message("user.message", "sevt_3", "Make it faster", 3),
    message("agent.message", "sevt_4", "Done", 4),
    message("user.message", "sevt_5", "See this", 5, [{ type: "image", source: {} }]),
  ]);
  const at = (index: number) => {
    const item = items[index];
    return item === undefined ? null : forkPoint(items, item);
  };

  it("replaces a message: the fork ends with what was before it", () => {
    expect(at(2)).toEqual({ eventId: "sevt_2", place: "before this message", text: "Make it faster" });
  });

  it("is right after everything else, after the first message, and after one with attachments", () => {
    expect([3, 0, 4].map((index) => at(index)?.eventId)).toEqual(["sevt_4", "sevt_1", "sevt_5"]);
    expect([3, 0, 4].map((index) => at(index)?.text)).toEqual(["", "", ""]);
  });
});
