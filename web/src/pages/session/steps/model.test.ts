import { describe, expect, it } from "vitest";

import { draftOf, EMPTY_DRAFT, findProblem, toEdit, toInput } from "./draft";
import { membersWithSessions } from "./group";
import {
  addMessageContent,
  describeState,
  findReferences,
  moveBefore,
  shortLabel,
  type Step,
  stepLabel,
  stepText,
  targetOf,
} from "./model";

function step(fields: Partial<Step> & { id: string }): Step {
  return {
    type: "step",
    session_id: "sesn_1",
    kind: "shell",
    name: null,
    state: "pending",
    waiting_for: null,
    sort_key: 1,
    condition: null,
    on_failure: "stop",
    max_attempts: 3,
    timeout_seconds: null,
    ends_session: false,
    is_message: false,
    attempt: 0,
    turn_id: null,
    result: null,
    created_at: "2026-11-19T00:00:00Z",
    started_at: null,
    ended_at: null,
    ...fields,
  };
}

const [a, b, c] = [step({ id: "a" }), step({ id: "b" }), step({ id: "c" })];
const ids = (steps: readonly Step[]): string => steps.map((one) => one.id).join("");

describe("the order of the queue", () => {
  it.each([
    ["c", "a", "cab"],
    ["a", null, "bca"],
    ["a", "c", "bac"],
    ["a", "a", "abc"],
    ["a", "gone", "abc"],
    ["gone", "a", "abc"],
  ])("moves %s before %s", (id, before, expected) => {
    expect(ids(moveBefore([a, b, c], id, before))).toBe(expected);
  });

  it.each([
    ["a", 1, "bac"],
    ["a", 2, "bca"],
    ["c", 0, "cab"],
    ["b", 0, "bac"],
  ])("finds what the API needs to move %s to place %i", (id, index, expected) => {
    const before = targetOf([a, b, c], id, index);
    expect(before).not.toBeUndefined();
    expect(ids(moveBefore([a, b, c], id, before ?? null))).toBe(expected);
  });

  it("leaves the first where it is, and the last", () => {
    expect([targetOf([a, b], "a", -1), targetOf([a, b], "b", 2), targetOf([a, b], "a", 0)]).toEqual(
      Array.from({ length: 3 }),
    );
  });
});

describe("a step in words", () => {
  it("shows prompts of texts and attachments", () => {
    const content = [{ type: "text", text: "Look" }, { type: "file", title: "a.txt" }, { type: "image" }];
    expect(stepText(step({ id: "a", kind: "prompt", content }))).toBe("Look\n[file: a.txt]\n[image]");
  });

  it("is a message whose text is in the conversation", () => {
    expect(stepLabel(step({ id: "a", kind: "prompt", content: [], is_message: true }))).toBe("a message");
  });

  it("names each reference once", () => {
    const found = findReferences(
      step({ id: "a", command: "echo ${steps.x.stdout} ${steps.x.stdout} ${steps.y.text}" }),
    );
    expect(found.map((one) => [one.step, one.field])).toEqual([
      ["x", "stdout"],
      ["y", "text"],
    ]);
  });

  it.each([
    [{ state: "pending", waiting_for: "retry" }, "tries again soon"],
    [{ state: "running", waiting_for: "action" }, "needs approval"],
    [{ state: "running", waiting_for: "action", kind: "external" }, "waits for a client"],
    [{ state: "running", waiting_for: "sessions", kind: "parallel" }, "waits for its sessions"],
    [{ state: "completed" }, "done"],
  ] as const)("says how %o is", (fields, words) => {
    expect(describeState(step({ id: "a", ...fields }))).toBe(words);
  });

  it("marks hidden characters in labels", () => {
    expect(shortLabel("a\u202eb\nc")).toBe("aU+202Eb c");
  });
});

describe("a draft", () => {
  it("is sent as the API takes it", () => {
    const draft = {
      ...EMPTY_DRAFT,
      kind: "shell",
      text: "make",
      name: " t ",
      onFailure: "retry",
      attempts: "5",
    } as const;
    expect(toInput(draft)).toEqual({
      kind: "shell",
      command: "make",
      terminal: false,
      name: "t",
      condition: null,
      on_failure: "retry",
      max_attempts: 5,
      ends_session: false,
      timeout_seconds: null,
    });
  });

  it("of a step changes nothing by itself", () => {
    const merge = step({ id: "a", kind: "merge", into: "main", message: "Add it", name: "m" });
    expect(toEdit(draftOf(merge))).toMatchObject({ into: "main", message: "Add it", name: "m", on_failure: "stop" });
    expect(toEdit(draftOf(merge))).not.toHaveProperty("timeout_seconds");
  });

  it.each([
    [{}, "Write the prompt."],
    [{ kind: "shell" }, "Write the command."],
    [{ kind: "parallel" }, "Describe at least one session."],
    [{ kind: "merge" }, null],
    [{ kind: "external" }, null],
  ] as const)("says what is missing in %o", (fields, problem) => {
    expect(findProblem({ ...EMPTY_DRAFT, ...fields })).toBe(problem);
  });
});

it("finds the sessions of a group that runs, by their titles", () => {
  const group = step({
    id: "a",
    kind: "parallel",
    state: "running",
    started_at: "2026-11-19T10:00:00Z",
    sessions: [
      { name: "one", steps: [{ command: "x" }] },
      { name: "two", steps: [{ command: "y" }] },
    ],
  });
  const child = (id: string, title: string, created_at: string, group_id: string) =>
    ({ id, title, created_at, group_id }) as never;
  const found = membersWithSessions(group, [
    child("s0", "one", "2026-11-19T09:00:00Z", "old"),
    child("s1", "two", "2026-11-19T10:00:01Z", "new"),
    child("s2", "one", "2026-11-19T10:00:01Z", "new"),
  ]);
  expect(found.map((one) => one.child?.id)).toEqual(["s2", "s1"]);
});

describe("messages in the queue", () => {
  it("have the text that the log has for them", () => {
    const steps = [
      step({ id: "step_1", kind: "prompt", is_message: true, content: [] }),
      step({ id: "step_2", kind: "prompt", content: [{ type: "text", text: "own" }] }),
      step({ id: "step_3", kind: "prompt", is_message: true, content: [] }),
    ];
    const messages = [
      { id: "sevt_1", content: [{ type: "text", text: "hello" }] },
      { id: "sevt_2", content: [{ type: "text", text: "other" }] },
    ];
    expect(addMessageContent(steps, messages).map(stepLabel)).toEqual(["hello", "own", "a message"]);
  });
});
