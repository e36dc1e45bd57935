// Evaluates the edited rules against past calls: how many would be decided otherwise, then which.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";

import { useAction } from "@/actions/use-actions";
import { projectsQuery } from "@/api/queries/new-session";
import { type Permissions, replayQuery, type ReplayRequest } from "@/api/queries/policy";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Select } from "@/design/components/select";
import { SkeletonRows } from "@/design/components/skeleton";
import { compact } from "@/frame/search";

import type { PolicySearch } from "../search";
import { ReplayResult } from "./replay-result";
import { startOf, sumPages } from "./replay";

const route = getRouteApi("/frame/policy");
const PERIODS = [
  { value: "1d", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "all", label: "All stored calls" },
] as const;
const DEFAULT_PERIOD = "7d";

export function PastCalls({ permissions }: { permissions: Permissions }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { since = DEFAULT_PERIOD, project } = search;
  const projects = useQuery(projectsQuery);
  const [wanted, setWanted] = useState<ReplayRequest | null>(null);
  const replay = useInfiniteQuery(replayQuery(wanted));
  const totals = replay.data === undefined ? null : sumPages(replay.data.pages);
  const isOutdated = wanted !== null && JSON.stringify(wanted.permissions) !== JSON.stringify(permissions);

  function change(next: Partial<Record<keyof PolicySearch, string | undefined>>): void {
    setWanted(null);
    void navigate({ search: compact({ ...search, change: undefined, ...next }) as PolicySearch, replace: true });
  }
  function test(): void {
    setWanted({ permissions, project_id: project, since: startOf(since, new Date()) });
  }
  useAction("policy.replay", test);
  return (
    <section aria-label="Past calls" className="flex flex-col gap-3 border-t pt-4">
      <div>
        <h2 className="font-semibold">Past calls</h2>
        <p className="text-sm text-muted">
          Shows which stored calls these rules would decide otherwise, together with the current rules of the other
          layers. Nothing runs.
        </p>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <Select
          label="Period"
          options={PERIODS}
          value={since}
          className="max-md:w-full"
          onChange={(value) => {
            change({ since: value === null || value === DEFAULT_PERIOD ? undefined : value });
          }}
        />
        <Select
          label="Project"
          options={(projects.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          value={project ?? null}
          clearLabel="All projects"
          className="max-md:w-full"
          onChange={(value) => {
            change({ project: value ?? undefined });
          }}
        />
        <Button className="max-md:h-11 max-md:w-full" disabled={replay.isFetching} onClick={test}>
          Test on past calls
        </Button>
      </div>
      {isOutdated && <p className="text-waiting">You changed the rules since. Test them again.</p>}
      {wanted !== null && replay.isPending && <SkeletonRows count={3} />}
      {replay.error !== null && (
        <ErrorPanel
          title="The rules could not be tested"
          error={replay.error}
          onRetry={() => void (replay.data === undefined ? replay.refetch() : replay.fetchNextPage())}
        />
      )}
      {totals !== null && (
        <ReplayResult
          totals={totals}
          selected={search.change}
          onSelect={(key) => {
            void navigate({ search: compact({ ...search, change: key }), replace: true });
          }}
        />
      )}
      {replay.hasNextPage && (
        <button
          type="button"
          className="h-11 w-full text-accent hover:bg-hover"
          disabled={replay.isFetchingNextPage}
          onClick={() => void replay.fetchNextPage()}
        >
          {replay.isFetchingNextPage ? "Evaluating older calls" : "Evaluate older calls"}
        </button>
      )}
    </section>
  );
}
