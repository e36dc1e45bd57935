import { describe, expect, it } from "vitest";

import { buildItems } from "../log/items";
import { readEvent } from "../log/events";
import { buildRows } from "./rows";

function message(id: string, text: string, position: number) {
  return readEvent({ id, type: "user.message", content: [{ type: "text", text }], processed_at: null }, position);
}

describe("messages in the queue", () => {
  const items = buildItems([message("sevt_1", "one", 1), message("sevt_2", "two", 2), message("sevt_3", "three", 3)]);
  const order = (queue: readonly string[]) => buildRows(items, [], [], queue).map((row) => row.key);

  it("follow the order of the queue", () => {
    expect(order(["step_3", "step_9", "step_1", "step_2"])).toEqual(["sevt_3", "sevt_1", "sevt_2"]);
  });

  it("are in the order in which they were sent, and last, as long as their place is not known", () => {
    expect(order([])).toEqual(["sevt_1", "sevt_2", "sevt_3"]);
    expect(order(["step_3"])).toEqual(["sevt_3", "sevt_1", "sevt_2"]);
  });
});
