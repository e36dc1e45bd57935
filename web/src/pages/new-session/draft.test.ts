import { describe, expect, it } from "vitest";

import { quote, toCommand, toPython } from "./commands";
import { type Draft, EMPTY_DRAFT, fromTemplate, titleOf, toRequests, toTemplate } from "./draft";

const DRAFT: Draft = { ...EMPTY_DRAFT, prompt: "Make the tests pass", agentId: "agent_1", environmentId: "env_1" };

describe("toRequests", () => {
  it("sends the task with the session, and nothing that was not chosen", () => {
    expect(toRequests(DRAFT)).toEqual({
      session: {
        agent: "agent_1",
        environment_id: "env_1",
        title: "Make the tests pass",
        initial_events: [{ type: "user.message", content: [{ type: "text", text: "Make the tests pass" }] }],
      },
      steps: [],
    });
  });

  it("keeps the agent's other limits when one of them is changed", () => {
    const { session } = toRequests({ ...DRAFT, maxIterations: "7", agentVersion: 2 }, { limits: { max_retries: 4 } });
    expect(session.agent).toEqual({
      type: "agent_with_overrides",
      id: "agent_1",
      version: 2,
      limits: { max_retries: 4, max_iterations: 7 },
    });
  });

  it("starts several attempts with one step, and keeps the one whose check succeeds", () => {
    const { session, steps } = toRequests({ ...DRAFT, attempts: 3, check: "pytest -q" });
    expect("initial_events" in session).toBe(false);
    expect(steps).toMatchObject([{ kind: "parallel", max_running: 3, branches: "best", check: "pytest -q" }]);
    expect(steps[0]?.["sessions"]).toHaveLength(3);
  });

  it("sends images to the model, and writes other files into the tree", () => {
    const attachments = [
      { fileId: "file_1", name: "a.png", type: "image/png", size: 1 },
      { fileId: "file_2", name: "a.csv", type: "text/csv", size: 1 },
    ];
    const { session } = toRequests({ ...DRAFT, attachments });
    expect(session).toMatchObject({
      initial_events: [{ content: [{ type: "text" }, { type: "image" }, { type: "file" }] }],
    });
  });
});

describe("templates", () => {
  it("give back what was saved", () => {
    const draft: Draft = {
      ...DRAFT,
      title: "Tests",
      projectId: "proj_1",
      attempts: 2,
      check: "make",
      mode: "background",
      visibility: "private",
      maxIterations: "9",
      timeoutMinutes: "30",
      allow: "Bash(ls *)\nRead",
      deny: "Bash(rm *)",
    };
    const session = toTemplate(draft) as unknown as Record<string, unknown>;
    expect(fromTemplate(session)).toEqual(draft);
  });

  it("keep fields that the form does not show", () => {
    const session = { agent: "agent_1", environment_id: "env_1", context: { a: 1 }, project_ids: ["p", "q"] };
    expect(toTemplate(fromTemplate(session))).toEqual(session);
  });
});

describe("titleOf", () => {
  it("is the first line, shortened between characters", () => {
    expect(titleOf("\n Fix it\nnow")).toBe("Fix it");
    expect(Array.from(titleOf("👩".repeat(100)))).toHaveLength(80);
  });
});

describe("commands", () => {
  it("quotes what a shell would interpret", () => {
    expect(quote("plain-1.txt")).toBe("plain-1.txt");
    expect(quote("it's $(rm -r ~) `x`\n")).toBe("'it'\\''s $(rm -r ~) `x`\n'");
    expect(quote("")).toBe("''");
  });

  it("uses footplate run where it has the options, and a pipeline file for several attempts", () => {
    expect(toCommand(DRAFT, toRequests(DRAFT))).toBe(
      "footplate run --agent agent_1 --environment env_1 --scratch -- 'Make the tests pass'",
    );
    const several = { ...DRAFT, attempts: 2 };
    expect(toCommand(several, toRequests(several))).toMatch(/^footplate queue run .* - <<'END'\n\{/);
    const ruled = { ...DRAFT, deny: "Bash(rm *)", attempts: 2 };
    expect(toCommand(ruled, toRequests(ruled))).toMatch(/^session=\$\(curl .*\n/);
  });

  it("writes literals of Python", () => {
    const code = toPython(toRequests({ ...DRAFT, prompt: 'Say "hi" \\ \n', others: { ends_when_done: true } }));
    expect(code).toContain('"text": "Say \\"hi\\" \\\\ \\n"');
    expect(code).toContain("ends_when_done=True,");
  });
});
