import { describe, expect, it } from "vitest";

import { groupHooks } from "./model";

const hook = (command: string) => [{ matcher: "", hooks: [{ type: "command", command }] }];

describe("groupHooks", () => {
  it("groups by event in the order of a turn, then by layer", () => {
    const found = groupHooks([
      { owner: "Organisation", hooks: { Stop: hook("a"), PreToolUse: hook("b") } },
      { owner: "Project website", hooks: { PreToolUse: hook("c") } },
      { owner: "Agent engineer", hooks: undefined },
    ]);
    expect(found.map(({ event, hooks }) => [event, hooks.map(({ owner, what }) => `${owner}: ${what}`)])).toEqual([
      ["PreToolUse", ["Organisation: b", "Project website: c"]],
      ["Stop", ["Organisation: a"]],
    ]);
  });
});
