// Runs changes of several sessions for the page, and offers them as actions.
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { keys } from "@/api/keys";
import { showToast } from "@/design/components/toast";

import { BULK_WORDS, type BulkKind, type BulkRun, countSessions, runBulk } from "./bulk";
import { NOT_PERMITTED } from "./bulk-bar";
import type { RowPages } from "./row-pages";
import type { SessionRow } from "./rows";

interface Bulk {
  run: BulkRun | null;
  toDelete: readonly SessionRow[] | null;
  start: (kind: BulkKind, rows?: readonly SessionRow[]) => void;
  confirmDelete: (rows: readonly SessionRow[]) => void;
  cancelDelete: () => void;
  close: () => void;
}

interface Options {
  /** What an action applies to: the selected sessions, or the one under the cursor. */
  targets: readonly SessionRow[];
  shown: readonly RowPages[];
  canOperate: boolean;
  onDone: (rows: readonly SessionRow[]) => void;
}

export function useBulk({ targets, shown, canOperate, onDone }: Options): Bulk {
  const queries = useQueryClient();
  const [run, setRun] = useState<BulkRun | null>(null);
  const [toDelete, setToDelete] = useState<readonly SessionRow[] | null>(null);

  async function execute(kind: BulkKind, rows: readonly SessionRow[]): Promise<void> {
    if (kind === "pin" || kind === "unpin") {
      for (const row of rows) {
        for (const pages of shown) {
          pages.patch(row.id, { isPinned: kind === "pin" });
        }
      }
    }
    const finished = await runBulk(kind, rows, setRun);
    const count = finished.total - finished.failures.length;
    if (kind === "pin" || kind === "unpin") {
      void queries.invalidateQueries({ queryKey: keys.pinnedSessions });
    }
    for (const pages of shown) {
      pages.markStale(rows.map((row) => row.id));
    }
    if (count > 0) {
      // What was selected meanwhile stays selected.
      onDone(rows);
      if (finished.failures.length === 0) {
        showToast({ title: `${countSessions(count)} ${BULK_WORDS[kind].done}`, timeout: 2_500 });
      }
    }
  }

  function start(kind: BulkKind, rows: readonly SessionRow[] = targets): void {
    if (rows.length === 0 || (run !== null && !run.isFinished)) {
      return;
    }
    if (!canOperate && kind !== "pin" && kind !== "unpin") {
      showToast({ title: "Not permitted", description: NOT_PERMITTED, tone: "failed" });
    } else if (kind === "delete") {
      setToDelete(rows);
    } else {
      void execute(kind, rows);
    }
  }

  const areAllPinned = targets.length > 0 && targets.every((row) => row.isPinned);
  useActions(
    targets.length === 0
      ? {}
      : {
          "sessions.pin": () => {
            start(areAllPinned ? "unpin" : "pin");
          },
          "sessions.interrupt": () => {
            start("interrupt");
          },
          "sessions.pause": () => {
            start("pause");
          },
          "sessions.play": () => {
            start("play");
          },
          "sessions.archive": () => {
            start("archive");
          },
          "sessions.delete": () => {
            start("delete");
          },
        },
  );

  return {
    run,
    toDelete,
    start,
    confirmDelete: (rows) => {
      setToDelete(null);
      void execute("delete", rows);
    },
    cancelDelete: () => {
      setToDelete(null);
    },
    close: () => {
      setRun(null);
    },
  };
}
