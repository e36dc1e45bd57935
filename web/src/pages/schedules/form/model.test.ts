import { describe, expect, it } from "vitest";

import { ApiError } from "@/api/errors";
import type { Schedule } from "@/api/queries/schedules";

import { findField, newValues, scheduleSchema, toFields, valuesOf } from "./model";

const STORED = {
  name: "nightly",
  description: null,
  schedule: { type: "cron", expression: "0 9 * * *", timezone: "UTC", last_run_at: null, upcoming_runs_at: [] },
  agent: { type: "agent", id: "agent_1", version: 2 },
  environment_id: "env_1",
  project_ids: ["proj_1"],
  initial_events: [{ type: "user.message", content: [{ type: "text", text: "Check" }] }],
  steps: [
    { kind: "shell", name: "tests", command: "make test", on_failure: "continue" },
    { kind: "merge", name: null, into: "main" },
  ],
  overlap_policy: "skip",
  catch_up_seconds: 600,
  ends_when_done: false,
} as unknown as Schedule;

const NEW = newValues({ agentId: "agent_1", environmentId: "env_1" });
const messagesOf = (values: unknown): string[] =>
  scheduleSchema.safeParse(values).error?.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`) ?? [];

describe("the form of a schedule", () => {
  it("sends all fields of a new schedule", () => {
    expect(toFields({ ...NEW, name: " nightly ", prompt: "Check", timezone: "UTC" }, null)).toEqual({
      name: "nightly",
      description: null,
      schedule: { type: "cron", expression: "0 9 * * 1-5", timezone: "UTC" },
      agent: "agent_1",
      environment_id: "env_1",
      project_ids: [],
      initial_events: [{ type: "user.message", content: [{ type: "text", text: "Check" }] }],
      steps: [],
      overlap_policy: "allow_all",
      catch_up_seconds: 600,
      ends_when_done: true,
    });
  });

  it("sends only what was changed, so that the agent keeps its version", () => {
    const values = valuesOf(STORED);
    expect(toFields({ ...values, name: "daily" }, { name: true })).toEqual({ name: "daily" });
    expect(toFields({ ...values, starts: "request" }, { starts: true })).toEqual({ schedule: null });
    expect(toFields({ ...values, updatesAgent: true }, { updatesAgent: true })).toEqual({ agent: "agent_1" });
  });

  it("keeps the other fields of steps, and the steps that it cannot edit", () => {
    const values = valuesOf(STORED);
    const [first, second] = values.steps;
    const steps = [{ ...first, text: "make check" }, second] as typeof values.steps;
    expect(toFields({ ...values, steps }, { steps: [{ text: true }] })["steps"]).toEqual([
      { kind: "shell", name: "tests", command: "make check", on_failure: "continue" },
      { kind: "merge", name: null, into: "main" },
    ]);
  });

  it("says what is missing", () => {
    expect(messagesOf({ ...NEW, expression: "", catchUp: "5" })).toEqual([
      "name: Give the schedule a name.",
      "catchUp: Write a number of seconds from 10 to 2,678,400.",
      "expression: Write when it runs, such as 0 9 * * 1-5.",
      "prompt: Write a message to the agent, or add a step.",
    ]);
    expect(messagesOf({ ...NEW, name: "n", steps: [{ kind: "shell", text: " ", stored: {} }] })).toEqual([
      "steps.0.text: Write a command.",
    ]);
  });

  it("finds the field of an error of the server", () => {
    const errorAt = (field: string): ApiError => new ApiError(400, { error: { field, message: "m" } }, null);
    expect(findField(errorAt("schedule.timezone"))).toBe("timezone");
    expect(findField(errorAt("steps.1.command"))).toBe("steps.1.text");
    expect(findField(errorAt("metadata"))).toBeNull();
    expect(findField(new Error("offline"))).toBeNull();
  });
});
