// Exports the entries that match the filters as a file with one entry per line, the oldest first.
import { useRef, useState } from "react";

import { type AuditFilters, readEntries } from "@/api/queries/policy";
import { showToast } from "@/design/components/toast";
import { saveFile } from "@/design/save-file";

interface Export {
  /** How many entries were read so far. Null: nothing is exported. */
  count: number | null;
  start: () => void;
  cancel: () => void;
}

export function useExport(filters: AuditFilters): Export {
  const [count, setCount] = useState<number | null>(null);
  const running = useRef<AbortController | null>(null);

  async function run(control: AbortController): Promise<void> {
    const lines: string[] = [];
    try {
      for await (const entries of readEntries(filters, control.signal)) {
        lines.push(...entries.map((entry) => `${JSON.stringify(entry)}\n`));
        setCount(lines.length);
      }
      saveFile("audit.jsonl", new Blob(lines, { type: "application/x-ndjson" }));
    } catch (error) {
      if (!control.signal.aborted) {
        const description = error instanceof Error ? error.message : String(error);
        showToast({ title: "The audit trail was not exported", description, tone: "failed" });
      }
    } finally {
      running.current = null;
      setCount(null);
    }
  }
  return {
    count,
    start: () => {
      if (running.current === null) {
        running.current = new AbortController();
        setCount(0);
        void run(running.current);
      }
    },
    cancel: () => running.current?.abort(),
  };
}
