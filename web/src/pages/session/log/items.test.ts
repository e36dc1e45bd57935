import { describe, expect, it } from "vitest";

import type { LogEvent } from "./events";
import { buildItems, eventIdsOf, type ItemCache, lastEventOf, type LogItem } from "./items";
import type { CallStatus } from "./tool-calls";

let position = 0;

function event(type: string, fields: Record<string, unknown> = {}): LogEvent {
  position += 1;
  const time = new Date(Date.UTC(2026, 0, 1, 0, 0, position)).toISOString();
  return { id: `event-${position}`, type, position, processed_at: time, ...fields };
}

function text(content: string): { content: { type: string; text: string }[] } {
  return { content: [{ type: "text", text: content }] };
}

function statusOf(items: readonly LogItem[]): CallStatus | undefined {
  const item = items.find((one) => one.kind === "tool");
  return item?.kind === "tool" ? item.call.status : undefined;
}

describe("tool calls", () => {
  it("are one item with their decision and result", () => {
    const use = event("agent.tool_use", { name: "bash", input: { command: "ls" }, evaluated_permission: "ask" });
    const decision = event("user.tool_confirmation", { tool_use_id: use.id, result: "allow" });
    const result = event("agent.tool_result", { tool_use_id: use.id, ...text("a.txt"), is_error: false });
    const items = buildItems([use, decision, result]);
    expect(items).toHaveLength(1);
    expect(items.flatMap(eventIdsOf)).toEqual([use.id, result.id, decision.id]);
    expect(items.map(lastEventOf)).toEqual([result]);
    const [item] = items;
    expect(item?.kind === "tool" && item.call.seconds).toBe(1);
  });

  it.each([
    ["ok", { ...text("fine"), is_error: false }],
    ["failed", { ...text("[exit code 1]"), is_error: true }],
    ["unknown", { ...text("The outcome of this call is unknown: the process that ran it was lost"), is_error: true }],
    ["interrupted", { ...text("The user interrupted this call while it was running."), is_error: true }],
  ] as const)("are %s by their result", (status, fields) => {
    const use = event("agent.tool_use", { name: "bash", input: {} });
    expect(statusOf(buildItems([use, event("agent.tool_result", { tool_use_id: use.id, ...fields })]))).toBe(status);
  });

  it("wait for a person until the decision or the end of the turn", () => {
    const use = event("agent.tool_use", { name: "bash", input: {}, evaluated_permission: "ask" });
    const waits = event("session.status_idle", { stop_reason: { type: "requires_action" } });
    expect(statusOf(buildItems([use, waits]))).toBe("waiting_approval");
    const decision = event("user.tool_confirmation", { tool_use_id: use.id, result: "deny" });
    expect(statusOf(buildItems([use, waits, decision]))).toBe("denied");
    const end = event("session.status_idle", { stop_reason: { type: "end_turn" } });
    expect(statusOf(buildItems([use, waits, end]))).toBe("no_result");
  });

  it("have the thread of the subagent that they started", () => {
    const use = event("agent.tool_use", { name: "Agent", input: { description: "Review" }, call_id: "call" });
    const created = event("session.thread_created", { session_thread_id: "t", agent_name: "helper", call_id: "call" });
    const idle = event("session.thread_status_idle", { session_thread_id: "t", stop_reason: { type: "end_turn" } });
    const [item] = buildItems([use, created, idle]);
    expect(item?.kind === "tool" && item.call.thread).toEqual({ id: "t", name: "helper", isRunning: false });
  });
});

describe("notices", () => {
  it("say that a worker was lost and another one continued", () => {
    const start = event("span.model_request_start");
    const lost = event("span.model_request_end", { is_error: true, model_request_start_id: start.id });
    const items = buildItems([start, lost, event("span.model_request_start")]);
    expect(items.map((item) => item.kind === "notice" && item.notice.title)).toEqual([
      "Worker lost, continued on another after 1 s",
    ]);
  });

  it("tell a limit, a failure and another attempt apart", () => {
    const error = (type: string, retry: string): LogEvent =>
      event("session.error", { error: { type, message: "why", retry_status: { type: retry } } });
    const items = buildItems([
      error("tool_use_limit_reached_error", "terminal"),
      error("model_request_failed_error", "terminal"),
      error("model_overloaded_error", "retrying"),
    ]);
    expect(items.map((item) => item.kind === "notice" && item.notice.tone)).toEqual(["waiting", "failed", "waiting"]);
  });
});

it("leaves out what waited in the queue when the session was forked", () => {
  const message = { ...event("user.message", text("Later")), processed_at: null };
  const fork = event("session.status_idle", { forked_from: { session_id: "parent" } });
  const own = { ...event("user.message", text("Mine")), processed_at: null };
  expect(buildItems([message, fork, own]).map((item) => item.key)).toEqual([fork.id, own.id]);
});

it("builds an item again only if something about it changed", () => {
  const cache: ItemCache = new Map();
  const use = event("agent.tool_use", { name: "bash", input: {} });
  const message = event("agent.message", text("Hello"));
  const before = buildItems([message, use], { cache });
  const result = event("agent.tool_result", { tool_use_id: use.id, ...text("fine"), is_error: false });
  const after = buildItems([message, use, result], { cache });
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
});

it("builds twenty thousand events quickly", () => {
  const events = Array.from({ length: 5000 }, (_, index) => {
    const use = event("agent.tool_use", { name: "bash", input: { command: `echo ${index}` } });
    return [
      event("span.model_request_start"),
      event("agent.message", text("Next.")),
      use,
      event("agent.tool_result", { tool_use_id: use.id, ...text("fine"), is_error: false }),
    ];
  }).flat();
  const start = performance.now();
  expect(buildItems(events)).toHaveLength(10_000);
  expect(performance.now() - start).toBeLessThan(1000);
});
