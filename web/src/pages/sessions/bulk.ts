// Changes several sessions: a few at a time, with progress, and with a list of what was not possible.
import {
  archiveSession,
  deleteSession,
  interruptSession,
  pauseSession,
  pinSession,
  playSession,
  unpinSession,
} from "@/api/queries/sessions";

import type { SessionRow } from "./rows";

export type BulkKind = "interrupt" | "pause" | "play" | "pin" | "unpin" | "archive" | "delete";

export interface Failure {
  row: SessionRow;
  error: unknown;
}

export interface BulkRun {
  kind: BulkKind;
  total: number;
  done: number;
  failures: readonly Failure[];
  isFinished: boolean;
}

const AT_ONCE = 6;

const CHANGES: Record<BulkKind, (id: string) => Promise<unknown>> = {
  interrupt: interruptSession,
  pause: pauseSession,
  play: playSession,
  pin: pinSession,
  unpin: unpinSession,
  archive: archiveSession,
  delete: deleteSession,
};

/** What is done, and what was done: "Archiving 3 sessions", "3 sessions archived". */
export const BULK_WORDS: Record<BulkKind, { verb: string; doing: string; done: string }> = {
  interrupt: { verb: "Interrupt", doing: "Interrupting", done: "interrupted" },
  pause: { verb: "Pause", doing: "Pausing", done: "paused" },
  play: { verb: "Play", doing: "Playing", done: "playing" },
  pin: { verb: "Pin", doing: "Pinning", done: "pinned" },
  unpin: { verb: "Unpin", doing: "Unpinning", done: "unpinned" },
  archive: { verb: "Archive", doing: "Archiving", done: "archived" },
  delete: { verb: "Delete", doing: "Deleting", done: "deleted" },
};

export function countSessions(count: number): string {
  return count === 1 ? "1 session" : `${count.toLocaleString()} sessions`;
}

/** Runs the change on each row, and reports after each. Resolves with the last report. */
export async function runBulk(
  kind: BulkKind,
  rows: readonly SessionRow[],
  report: (run: BulkRun) => void,
  change: (id: string) => Promise<unknown> = CHANGES[kind],
): Promise<BulkRun> {
  let run: BulkRun = { kind, total: rows.length, done: 0, failures: [], isFinished: rows.length === 0 };
  const queue = [...rows];
  async function work(): Promise<void> {
    for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
      const failed: Failure[] = [];
      try {
        await change(row.id);
      } catch (error) {
        failed.push({ row, error });
      }
      const done = run.done + 1;
      run = { ...run, done, failures: [...run.failures, ...failed], isFinished: done === run.total };
      report(run);
    }
  }
  report(run);
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, rows.length) }, work));
  return run;
}
