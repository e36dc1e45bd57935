// Says in one sentence whether everything runs, or what is wrong.
import type { TaskQueue, Worker } from "@/api/queries/health";
import { formatDuration } from "@/design/format";

import { countSessions, type StuckGroup } from "./stuck";

/** What is undefined is not known: it is being loaded, could not be loaded, or may not be read. */
export interface HealthFacts {
  groups: readonly StuckGroup[] | undefined;
  /** Of all stuck sessions; the groups may have the newest ones only. */
  stuckTotal: number;
  workers: readonly Worker[] | undefined;
  /** Of all backends. Every member may read it. */
  hasWorker: boolean | undefined;
  queues: readonly TaskQueue[] | undefined;
  respondsTemporal: boolean | undefined;
}

export interface Finding {
  tone: "failed" | "waiting" | "success";
  text: string;
}

/** Tasks are taken within a second. */
const LONG_WAIT_SECONDS = 60;

/** What is wrong, the worst first. Empty: nothing is. */
export function findProblems(facts: HealthFacts): Finding[] {
  const groups = facts.groups ?? [];
  const problems: Finding[] = [];
  if (facts.respondsTemporal === false) {
    problems.push({ tone: "failed", text: "Temporal does not respond: no work can start." });
  }
  const running = facts.workers?.filter((worker) => worker.state === "running");
  const hasNoWorker = running === undefined ? facts.hasWorker === false : running.length === 0;
  if (hasNoWorker) {
    const waiting = facts.stuckTotal > 0 ? `${countSessions(facts.stuckTotal)}: no worker is running.` : null;
    problems.push({ tone: "failed", text: waiting ?? "No worker is running: no work can start." });
  }
  const isPartial = groups.reduce((sum, group) => sum + group.sessions.length, 0) < facts.stuckTotal;
  for (const group of groups) {
    if (!hasNoWorker || group.reason === "author_disabled" || group.reason === "turn_limit") {
      const text = `${countSessions(group.sessions.length)}: ${group.cause}.`;
      problems.push({ tone: "waiting", text: isPartial ? `At least ${text}` : text });
    }
  }
  if (!hasNoWorker) {
    problems.push(...findQueueProblems(facts.queues ?? []));
    if (running !== undefined && isFull(running)) {
      problems.push({ tone: "waiting", text: `${describeLoad(running)} are in use: new work waits.` });
    }
  }
  return problems;
}

function findQueueProblems(queues: readonly TaskQueue[]): Finding[] {
  return queues.flatMap((queue): Finding[] => {
    if (queue.backlog === 0) {
      return [];
    }
    const tasks = queue.backlog === 1 ? "1 task waits" : `${queue.backlog.toLocaleString("en-US")} tasks wait`;
    if (queue.pollers === 0) {
      return [{ tone: "failed", text: `${tasks} in the queue ${queue.name}, and no worker polls it.` }];
    }
    return queue.oldest_seconds > LONG_WAIT_SECONDS
      ? [
          {
            tone: "waiting",
            text: `${tasks} in the queue ${queue.name}, the oldest for ${formatDuration(queue.oldest_seconds)}.`,
          },
        ]
      : [];
  });
}

/** Whether no worker can take another turn. A worker without a limit always can. */
function isFull(workers: readonly Worker[]): boolean {
  return workers.every((worker) => worker.max_turns !== null && worker.running_turns >= worker.max_turns);
}

/** `3 of 16 turns`. */
export function describeLoad(workers: readonly Worker[]): string {
  const used = workers.reduce((sum, worker) => sum + worker.running_turns, 0);
  const limits = workers.map((worker) => worker.max_turns);
  return limits.includes(null)
    ? `${used} turns`
    : `${used} of ${limits.reduce<number>((sum, limit) => sum + (limit ?? 0), 0)} turns`;
}

/** The sentence at the top. Null: not enough is known yet. */
export function summarize(facts: HealthFacts, problems: readonly Finding[]): Finding | null {
  const [worst] = [...problems].sort((one, other) => rank(one) - rank(other));
  if (worst !== undefined) {
    return worst;
  }
  if (facts.groups === undefined || facts.respondsTemporal === undefined) {
    return null;
  }
  const running = facts.workers?.filter((worker) => worker.state === "running");
  if (running !== undefined) {
    const workers = running.length === 1 ? "1 worker" : `${running.length} workers`;
    return { tone: "success", text: `Everything runs: ${workers}, ${describeLoad(running)} in use.` };
  }
  return facts.hasWorker === undefined ? null : { tone: "success", text: "Everything runs: no session is stuck." };
}

const rank = (finding: Finding): number => (finding.tone === "failed" ? 0 : 1);
