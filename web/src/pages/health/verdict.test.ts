import { describe, expect, it } from "vitest";

import type { TaskQueue, Worker } from "@/api/queries/health";
import type { ListedSession } from "@/api/queries/sessions";

import { groupStuckSessions, type StuckReason } from "./stuck";
import { findProblems, type HealthFacts, summarize } from "./verdict";

function worker(fields: Partial<Worker> = {}): Worker {
  return {
    type: "worker",
    id: "worker_1",
    host: "build-1",
    state: "running",
    version: "1.0",
    backends: ["sandbox"],
    harnesses: ["native"],
    running_turns: 3,
    max_turns: 8,
    started_at: "2026-11-19T10:00:00Z",
    last_seen_at: "2026-11-19T12:00:00Z",
    ...fields,
  };
}

function queue(fields: Partial<TaskQueue>): TaskQueue {
  return {
    type: "task_queue",
    name: "footplate",
    kind: "activity",
    backend: null,
    backlog: 0,
    oldest_seconds: 0,
    added_per_second: 0,
    taken_per_second: 0,
    pollers: 1,
    ...fields,
  };
}

function session(reason: StuckReason, backend: string | null = null): ListedSession {
  return {
    backend,
    activity: { state: "stalled", reason: reason === "queued" ? null : reason, message: null, since: null },
  } as ListedSession;
}

const BACKENDS = [
  { name: "sandbox", is_default: true, workers: 1 },
  { name: "docker", is_default: false, workers: 0 },
];

function facts(stuck: readonly ListedSession[], fields: Partial<HealthFacts> = {}): HealthFacts {
  return {
    groups: groupStuckSessions(stuck, BACKENDS),
    stuckTotal: stuck.length,
    workers: [worker()],
    hasWorker: true,
    queues: [queue({})],
    respondsTemporal: true,
    ...fields,
  };
}

function headline(of: HealthFacts): string | null {
  return summarize(of, findProblems(of))?.text ?? null;
}

describe("the sentence at the top", () => {
  it("says that everything runs, with the load", () => {
    const all = facts([], { workers: [worker(), worker({ running_turns: 0 }), worker({ state: "lost" })] });
    expect(headline(all)).toBe("Everything runs: 2 workers, 3 of 16 turns in use.");
    expect(headline(facts([], { workers: [worker({ max_turns: null })] }))).toBe(
      "Everything runs: 1 worker, 3 turns in use.",
    );
    expect(headline(facts([], { workers: undefined, queues: undefined }))).toBe(
      "Everything runs: no session is stuck.",
    );
  });

  it("says nothing as long as something is not known", () => {
    expect(headline(facts([], { groups: undefined }))).toBeNull();
    expect(headline(facts([], { respondsTemporal: undefined }))).toBeNull();
    expect(headline(facts([], { workers: undefined, hasWorker: undefined }))).toBeNull();
  });

  it("names the backend that is missing", () => {
    expect(headline(facts([session("no_backend", "docker"), session("no_backend", "docker")]))).toBe(
      "2 sessions wait: no worker offers docker.",
    );
    expect(headline(facts([session("no_backend", "sandbox")]))).toBe("1 session waits: no worker offers the backend.");
  });

  it("says once that no worker is running", () => {
    const stopped = facts([session("no_worker"), session("no_worker"), session("author_disabled")], {
      workers: [worker({ state: "lost" })],
      queues: [queue({ backlog: 4, pollers: 0 })],
    });
    expect(findProblems(stopped).map((problem) => problem.text)).toEqual([
      "3 sessions wait: no worker is running.",
      "1 session waits: the author of the next message is disabled.",
    ]);
    expect(headline(facts([], { workers: [] }))).toBe("No worker is running: no work can start.");
    expect(headline(facts([], { workers: undefined, hasWorker: false }))).toBe(
      "No worker is running: no work can start.",
    );
  });

  it("puts what stops all work before what stops some", () => {
    const mixed = facts([session("queued")], { queues: [queue({ name: "docker", backlog: 2, pollers: 0 })] });
    expect(headline(mixed)).toBe("2 tasks wait in the queue docker, and no worker polls it.");
    expect(headline(facts([session("queued")], { respondsTemporal: false }))).toBe(
      "Temporal does not respond: no work can start.",
    );
  });

  it("reports workers without a free turn, and tasks that are old", () => {
    expect(headline(facts([], { workers: [worker({ running_turns: 8 })] }))).toBe(
      "8 of 8 turns are in use: new work waits.",
    );
    expect(headline(facts([], { queues: [queue({ backlog: 1, oldest_seconds: 5 })] }))).toContain("Everything runs");
    expect(headline(facts([], { queues: [queue({ backlog: 1, oldest_seconds: 120 })] }))).toBe(
      "1 task waits in the queue footplate, the oldest for 2 min.",
    );
  });

  it("does not claim a number that it does not know", () => {
    expect(headline(facts([session("worker_lost")], { stuckTotal: 340 }))).toBe(
      "At least 1 session waits: the worker was lost.",
    );
  });
});

it("groups sessions by reason and backend, the most urgent first", () => {
  const groups = groupStuckSessions(
    [
      session("queued"),
      session("no_backend", "docker"),
      session("no_backend"),
      session("queued"),
      session("no_worker"),
    ],
    [...BACKENDS.slice(1), { name: "sandbox", is_default: true, workers: 0 }],
  );
  expect(groups.map((group) => [group.id, group.sessions.length])).toEqual([
    ["no_worker", 1],
    ["no_backend docker", 1],
    ["no_backend sandbox", 1],
    ["queued", 2],
  ]);
});
