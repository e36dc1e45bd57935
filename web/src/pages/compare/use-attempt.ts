// Everything that the comparison shows of one session.
import { useQuery } from "@tanstack/react-query";

import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import { sessionQuery } from "@/api/queries/sessions";
import type { components } from "@/api/schema";
import { type Session } from "@/api/session-state";
import type { FileChange } from "../session/changes/parse-file";
import { type FileSummary, patchUrl, summaryQuery, type TreeDiff, turnsQuery } from "../session/changes/queries";
import type { Turn } from "../session/changes/ranges";
import { usePatch } from "../session/changes/use-patch";
import { useChangesRefresh } from "../session/changes/use-refresh";

type Step = components["schemas"]["Step"];

const NO_FILES: readonly FileSummary[] = [];
const NO_TURNS: readonly Turn[] = [];
const NO_STEPS: readonly Step[] = [];

export interface Attempt {
  id: string;
  session: Session | undefined;
  error: unknown;
  retry: () => void;
  turns: readonly Turn[];
  /** Commands that ran as steps: tests, linters. */
  checks: readonly Step[];
  tree: TreeDiff | undefined;
  listed: readonly FileSummary[];
  files: readonly FileChange[];
  isComplete: boolean;
}

export function useAttempt(id: string): Attempt {
  const { data: session, error, refetch } = useQuery(sessionQuery(id));
  useChangesRefresh(id, session?.state === "running");
  const { data: turns } = useQuery(turnsQuery(id));
  const { data: steps } = useQuery({
    queryKey: ["compare", id, "steps", turns?.length],
    queryFn: ({ signal }) =>
      request<Listing<Step>>("GET", `/v1/sessions/${encodeURIComponent(id)}/steps`, { query: { limit: 100 }, signal }),
  });
  const summary = useQuery(summaryQuery(id, {}));
  const trees = summary.data?.trees ?? [];
  const tree = trees.find((one) => one.files.length > 0) ?? trees[0];
  const listed = tree?.files ?? NO_FILES;
  const patch = usePatch(
    tree === undefined || listed.length === 0
      ? null
      : patchUrl(id, tree.project_id === null ? {} : { project_id: tree.project_id }),
    String(summary.dataUpdatedAt),
  );
  return {
    id,
    session,
    error: error ?? summary.error ?? patch.error,
    retry: () => {
      void refetch();
      void summary.refetch();
      patch.retry();
    },
    turns: turns ?? NO_TURNS,
    checks: steps?.data.filter((step) => step.kind === "shell") ?? NO_STEPS,
    tree,
    listed,
    files: patch.files,
    isComplete: summary.isSuccess && (listed.length === 0 || patch.isComplete),
  };
}

export function titleOf(attempt: Attempt): string {
  return attempt.session?.title ?? "Untitled session";
}
