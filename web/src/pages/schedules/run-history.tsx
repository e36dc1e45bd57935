// The runs of a schedule, the newest first, with their sessions or the reason why there is none.
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";

import { useActions } from "@/actions/use-actions";
import { runsQuery, type Schedule, type ScheduleRun } from "@/api/queries/schedules";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { compact } from "@/frame/search";

import { formatInZone } from "./describe";
import { RunOutcome } from "./marks";

const route = getRouteApi("/frame/schedules/$scheduleId");

export function RunHistory({ schedule }: { schedule: Schedule }) {
  const { failed } = route.useSearch();
  const navigate = useNavigate();
  const list = useInfiniteQuery(runsQuery({ deployment_id: schedule.id, has_error: failed }));
  const runs = list.data?.pages.flatMap((page) => page.data) ?? [];
  function showFailed(isOn: boolean): void {
    void navigate({
      to: "/schedules/$scheduleId",
      params: { scheduleId: schedule.id },
      search: compact({ failed: isOn ? (true as const) : undefined }),
      replace: true,
    });
  }
  useActions({
    "schedules.failed-runs": () => {
      showFailed(failed !== true);
    },
  });
  return (
    <section aria-label="Runs" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
        <h2 className="flex-1 font-semibold">Runs</h2>
        <Switch checked={failed === true} onCheckedChange={showFailed}>
          Only without a session
        </Switch>
      </div>
      {list.isPending && <SkeletonRows count={3} />}
      {list.error !== null && list.data === undefined && (
        <ErrorPanel title="The runs could not be loaded" error={list.error} onRetry={() => void list.refetch()} />
      )}
      {list.isSuccess && runs.length === 0 && (
        <p className="text-muted">
          {failed === true
            ? "Every run has a session."
            : "No runs yet. Runs are deleted after 90 days unless the server is set up otherwise."}
        </p>
      )}
      {runs.length > 0 && (
        <ul aria-label="Runs" className="border-t">
          {runs.map((run) => (
            <li
              key={run.id}
              className="flex min-h-9 items-center gap-x-3 border-b py-1.5 max-md:flex-wrap max-md:gap-y-0.5"
            >
              <span className="flex w-28 shrink-0 max-md:w-auto">
                <RunOutcome run={run} />
              </span>
              <span className="w-56 shrink-0 truncate text-muted max-md:w-auto">{describeTrigger(run, schedule)}</span>
              <Time value={run.created_at} className="w-24 shrink-0 text-muted max-md:ml-auto max-md:w-auto" />
              <span className="min-w-0 flex-1 max-md:basis-full">
                {run.session_id === null ? (
                  <SafeText className="break-words text-muted" limit={500}>
                    {run.error?.message ?? ""}
                  </SafeText>
                ) : (
                  <Link
                    to="/sessions/$sessionId"
                    params={{ sessionId: run.session_id }}
                    className="text-accent hover:underline"
                  >
                    Open the session
                  </Link>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <button
          type="button"
          className="h-11 w-full text-accent hover:bg-hover"
          disabled={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          Show more
        </button>
      )}
    </section>
  );
}

function describeTrigger(run: ScheduleRun, schedule: Schedule): string {
  const time = run.trigger_context["scheduled_at"];
  return typeof time === "string"
    ? `Scheduled for ${formatInZone(time, schedule.schedule?.timezone ?? "UTC")}`
    : "On request";
}
