import { describe, expect, it } from "vitest";

import type { AuditEntry } from "@/api/queries/policy";

import { describeDecider, describeOutcome, describeReason, describeSubject, timeOfDay, toneOf } from "./describe";

function entry(change: Partial<AuditEntry>): AuditEntry {
  return {
    id: "audt_1",
    type: "audit_entry",
    kind: "decision",
    created_at: "2026-11-19T10:00:00Z",
    session_id: null,
    turn_id: null,
    event_id: null,
    principal: null,
    principal_name: null,
    session_title: null,
    outcome: null,
    tool: null,
    layer: null,
    input_summary: null,
    input_hash: null,
    content: null,
    content_hash: "",
    ...change,
  };
}

describe("an entry", () => {
  it.each<[Partial<AuditEntry>, string, string, string, string]>([
    [
      {
        outcome: "deny",
        tool: "bash",
        input_summary: "rm x",
        layer: "project",
        content: { rule: "Bash(rm *)", reason: "It applies." },
      },
      "denied",
      "rule",
      "bash rm x",
      "project Bash(rm *): It applies.",
    ],
    [{ outcome: "allow", tool: "bash" }, "allowed", "default", "bash (input no longer stored)", ""],
    [
      {
        kind: "answer",
        outcome: "allow",
        tool: "bash",
        input_summary: "ls",
        input_hash: "ab",
        content: { session_rule: "Bash(ls)" },
      },
      "allowed",
      "member",
      "bash ls",
      "with an edited input · for this session: Bash(ls)",
    ],
    [{ kind: "answer", outcome: "deny", principal: "clock" }, "denied", "timeout", "(input no longer stored)", ""],
    [{ kind: "policy", content: { permissions: {} } }, "changed", "member", "rules of the organisation", ""],
    [
      { kind: "change", layer: "project", content: { action: "project.archive", id: "proj_1" } },
      "changed",
      "member",
      "project.archive proj_1",
      "",
    ],
    [
      {
        kind: "hook",
        outcome: "none",
        tool: "bash",
        layer: "agent",
        content: { hook: "check", hook_event: "PreToolUse", reason: "" },
      },
      "no decision",
      "hook",
      "PreToolUse bash",
      "agent check",
    ],
    [
      { kind: "refusal", outcome: "deny", content: { method: "POST", path: "/v1/policies", message: "No." } },
      "refused",
      "member",
      "POST /v1/policies",
      "No.",
    ],
    [
      { kind: "error", outcome: "retried", content: { error: "overloaded", status: "re_scheduling", attempt: 2 } },
      "retried",
      "server",
      "overloaded · re scheduling",
      "",
    ],
    [
      { kind: "sign_in", outcome: "deny", content: { action: "sign_in", method: "oidc", reason: "No group." } },
      "refused",
      "member",
      "sign_in · oidc",
      "No group.",
    ],
    [{ kind: "terminal", content: { action: "terminal.write" } }, "attached", "member", "terminal, to type", ""],
  ])("%o", (change, outcome, decider, subject, reason) => {
    const one = entry(change);
    expect([describeOutcome(one), describeDecider(one), describeSubject(one), describeReason(one)]).toEqual([
      outcome,
      decider,
      subject,
      reason,
    ]);
  });

  it("is marked if something was denied or asked", () => {
    expect(
      [
        entry({ outcome: "deny" }),
        entry({ outcome: "ask" }),
        entry({ kind: "policy" }),
        entry({ kind: "refusal" }),
      ].map(toneOf),
    ).toEqual(["failed", "waiting", "neutral", "failed"]);
  });
});

describe("timeOfDay", () => {
  it("is the edge of a day in the zone of the browser", () => {
    const start = new Date(timeOfDay("2026-11-19", "start") ?? "");
    const end = new Date(timeOfDay("2026-11-19", "end") ?? "");
    expect([start.getHours(), start.getDate(), end.getHours(), end.getDate()]).toEqual([0, 19, 23, 19]);
    expect([timeOfDay(undefined, "start"), timeOfDay("soon", "end")]).toEqual([undefined, undefined]);
  });
});
