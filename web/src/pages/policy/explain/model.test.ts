import { describe, expect, it } from "vitest";

import { readCall } from "./model";

describe("readCall", () => {
  it("takes a command, a main argument, or the whole input", () => {
    expect(readCall({ call: "rm -r x" })).toEqual({ tool: "Bash", input: { command: "rm -r x" } });
    expect(readCall({ tool: "Read", call: ".env" })).toEqual({ tool: "Read", input: { file_path: ".env" } });
    expect(readCall({ tool: "Bash", call: '{"command": "ls"}' })).toEqual({ tool: "Bash", input: { command: "ls" } });
    expect(readCall({ tool: "mcp__a__b", call: '{"x": 1}' })).toEqual({ tool: "mcp__a__b", input: { x: 1 } });
    expect(readCall({ call: '{"$x"; }' })).toEqual({ tool: "Bash", input: { command: '{"$x"; }' } });
  });

  it("uses the rules of a session, or of a new one", () => {
    const call = { call: "ls", agent: "agent_1", project: "proj_1" };
    expect(readCall(call)).toMatchObject({ agent_id: "agent_1", project_id: "proj_1" });
    expect(readCall({ ...call, session: "sesn_1" })).toEqual({
      tool: "Bash",
      input: { command: "ls" },
      session_id: "sesn_1",
    });
  });

  it("finds nothing, and what is wrong", () => {
    expect(readCall({ call: " " })).toBeNull();
    expect(readCall({ tool: "mcp__a__b", call: "[1]" })).toMatchObject({ field: "call" });
  });
});
