import { describe, expect, it } from "vitest";

import type { Session } from "@/api/session-state";
import type { Step } from "../steps/model";
import { arrangeGroups, describeGroup, groupTitle } from "./tree";

function child(
  id: string,
  title: string,
  group_id: string,
  outcome: string | null,
  created_at = "2026-11-19T10:00:01Z",
) {
  const end = outcome === null ? null : { outcome, reason: null, ended_at: "", ended_by: null };
  return { id, title, group_id, created_at, archived_at: null, end } as unknown as Session;
}

const best = {
  id: "step_1",
  kind: "parallel",
  name: "work",
  state: "completed",
  started_at: "2026-11-19T10:00:00Z",
  ended_at: "2026-11-19T10:01:00Z",
  branches: "best",
  sessions: [{ name: "small" }, { name: "clear" }],
  result: {
    sessions: [
      { index: 0, session_id: "s2", outcome: "failed" },
      { index: 1, session_id: "s1", outcome: "completed" },
    ],
  },
} as unknown as Step;

describe("groups", () => {
  it("have the order of their step, and say what came of them", () => {
    const [group] = arrangeGroups(
      [child("s1", "clear", "g", "completed"), child("s2", "small", "g", "failed")],
      [best],
    );
    expect(group?.members.map((member) => member.title)).toEqual(["small", "clear"]);
    expect(group && groupTitle(group)).toBe("Step work");
    expect(group && describeGroup(group)).toBe("best of the attempts · 1 of 2 completed, chosen: clear");
  });

  it("of the agent are told apart, and counted while they run", () => {
    const groups = arrangeGroups(
      [
        child("s3", "late", "h", null, "2026-11-19T11:00:00Z"),
        child("s1", "a", "g", "completed"),
        child("s2", "b", "g", null),
      ],
      [],
    );
    expect(groups.map((group) => [groupTitle(group), describeGroup(group)])).toEqual([
      ["2 sessions of the agent", "1 of 2 ended"],
      ["Started by the agent", "0 of 1 ended"],
    ]);
  });
});
