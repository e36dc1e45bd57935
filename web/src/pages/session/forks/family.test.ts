import { expect, it } from "vitest";

import type { Session } from "@/api/session-state";
import { describeForkPoint, forkTurn, layOut } from "./family";

function member(id: string, parentId: string | null, position = 0) {
  const forked_from = parentId === null ? null : { session_id: parentId, event_id: null, position };
  return { session: { id, created_at: id, forked_from } as unknown as Session, parentId };
}

it("lays out forks below their parents, in the order of their fork points", () => {
  const rows = layOut({
    members: [member("root", null), member("late", "root", 9), member("early", "root", 2), member("deep", "early", 3)],
    hasHiddenRoot: false,
    isCut: false,
  });
  expect(rows.map((row) => [row.session.id, row.level, row.lines, row.isLast, row.hasForks])).toEqual([
    ["root", 0, [], true, true],
    ["early", 1, [], false, true],
    ["deep", 2, [true], true, false],
    ["late", 1, [], true, false],
  ]);
});

it.each([
  [1, "forked before its first turn"],
  [2, "forked at turn 1"],
  [30, "forked at turn 2"],
])("names the turn of position %i", (position, words) => {
  expect(describeForkPoint(forkTurn(position, [{ first_seq: 2 }, { first_seq: 23 }]))).toBe(words);
});

it("says nothing while the turns are not known", () => {
  expect(describeForkPoint(forkTurn(1, undefined))).toBe("");
});
