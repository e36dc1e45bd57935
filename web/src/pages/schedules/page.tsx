// Schedules: sessions that start at set times, with the next time and what became of the last run.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { lastRunQuery, type Schedule, schedulesQuery } from "@/api/queries/schedules";
import { cn } from "@/design/classes";
import { Button, buttonStyle } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { Skeleton, SkeletonRows } from "@/design/components/skeleton";
import { Switch } from "@/design/components/switch";
import { Tab, TabList, Tabs } from "@/design/components/tabs";
import { Time } from "@/design/components/time";
import { SafeText } from "@/design/text/text";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";
import { ConfirmDialog } from "@/pages/session/confirm-dialog";

import { describePause, describeTimes, formatInZone, nextRunOf } from "./describe";
import { RunOutcome, ScheduleState } from "./marks";
import type { SchedulesSearch } from "./search";
import { useScheduleCommands } from "./use-commands";

const route = getRouteApi("/frame/schedules");
const NONE: readonly Schedule[] = [];
/** The columns of the header and of the rows. */
const COLUMNS = "grid grid-cols-[96px_minmax(0,4fr)_minmax(0,5fr)_88px_176px] items-center gap-x-3 px-4";

export default function SchedulesPage() {
  usePageTitle("Schedules");
  const search = route.useSearch();
  const { status, archived, selected: selectedId } = search;
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const canOperate = me?.permissions.includes("operate") ?? false;
  const list = useInfiniteQuery(
    schedulesQuery(compact({ status, include_archived: status === undefined ? archived : undefined })),
  );
  const schedules = list.data?.pages.flatMap((page) => page.data) ?? NONE;
  const selected = schedules.find((one) => one.id === selectedId);
  const isCurrent = selected?.archived_at === null;
  const commands = useScheduleCommands();

  function go(change: { [K in keyof SchedulesSearch]?: SchedulesSearch[K] | undefined }, replace = false): void {
    void navigate({ to: "/schedules", search: compact({ ...search, ...change }), replace });
  }
  useListKeys({
    next: "schedules.next",
    previous: "schedules.previous",
    open: "schedules.open",
    count: schedules.length,
    selected: schedules.findIndex((one) => one.id === selectedId),
    onSelect: (index) => {
      go({ selected: schedules[index]?.id }, true);
    },
    onOpen: () => {
      if (selected !== undefined) {
        void navigate({ to: "/schedules/$scheduleId", params: { scheduleId: selected.id } });
      }
    },
  });
  useActions({
    "schedules.show-archived": () => {
      go({ status: undefined, archived: archived === true ? undefined : true });
    },
    ...(canOperate ? { "schedules.new": () => void navigate({ to: "/schedules/new" }) } : {}),
    ...(canOperate && isCurrent
      ? {
          "schedules.edit": () =>
            void navigate({ to: "/schedules/$scheduleId/edit", params: { scheduleId: selected.id } }),
          "schedules.run": () => {
            commands.run(selected);
          },
          "schedules.pause": () => {
            commands.togglePause(selected);
          },
          "schedules.archive": () => {
            commands.archive(selected);
          },
        }
      : {}),
  });
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-x-4 border-b pr-4">
        <Tabs
          value={status ?? "all"}
          onValueChange={(next: "all" | "active" | "paused") => {
            go({ status: next === "all" ? undefined : next, selected: undefined });
          }}
        >
          <TabList label="Status" className="border-b-0">
            <Tab value="all">All</Tab>
            <Tab value="active">Active</Tab>
            <Tab value="paused">Paused</Tab>
          </TabList>
        </Tabs>
        <div className="ml-auto flex items-center gap-4 py-1">
          {status === undefined && (
            <Switch
              checked={archived === true}
              onCheckedChange={(isOn) => {
                go({ archived: isOn ? true : undefined });
              }}
            >
              Show archived
            </Switch>
          )}
          {canOperate && (
            <Link to="/schedules/new" className={cn(buttonStyle({ variant: "primary" }), "max-md:h-11")}>
              New schedule
            </Link>
          )}
        </div>
      </div>
      {list.isPending && <SkeletonRows />}
      {list.error !== null && list.data === undefined && (
        <ErrorPanel
          className="m-4"
          title="The schedules could not be loaded"
          error={list.error}
          onRetry={() => void list.refetch()}
        />
      )}
      {list.isSuccess && schedules.length === 0 && (
        <Nothing isFiltered={status !== undefined} canOperate={canOperate} />
      )}
      {schedules.length > 0 && (
        <>
          <div aria-hidden className={cn(COLUMNS, "h-8 shrink-0 border-b text-xs text-muted max-md:hidden")}>
            <span>Status</span>
            <span>Schedule</span>
            <span>Times</span>
            <span>Next run</span>
            <span>Last run</span>
          </div>
          <ul aria-label="Schedules" className="min-h-0 flex-1 overflow-y-auto">
            {schedules.map((schedule) => (
              <Row key={schedule.id} schedule={schedule} isSelected={schedule.id === selectedId} />
            ))}
            {list.hasNextPage && (
              <li>
                <button
                  type="button"
                  className="h-11 w-full text-accent hover:bg-hover"
                  disabled={list.isFetchingNextPage}
                  onClick={() => void list.fetchNextPage()}
                >
                  Show more
                </button>
              </li>
            )}
          </ul>
        </>
      )}
      {commands.confirmation !== null && (
        <ConfirmDialog confirmation={commands.confirmation} onClose={commands.closeConfirmation} />
      )}
    </div>
  );
}

function Row({ schedule, isSelected }: { schedule: Schedule; isSelected: boolean }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isSelected) {
      row.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isSelected]);
  const cron = schedule.schedule;
  const next = nextRunOf(schedule);
  const pause = describePause(schedule);
  return (
    <li
      ref={row}
      aria-current={isSelected ? "true" : undefined}
      className={cn(
        "relative min-h-9 border-b py-1.5 hover:bg-hover aria-[current]:bg-selected aria-[current]:shadow-[inset_2px_0_0_var(--accent)]",
        COLUMNS,
        "max-md:flex max-md:flex-wrap max-md:gap-y-0.5 max-md:py-2",
      )}
    >
      <ScheduleState schedule={schedule} />
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: schedule.id }}
        title={schedule.name}
        className="min-w-0 font-medium outline-offset-[-2px] after:absolute after:inset-0 max-md:-order-1 max-md:basis-full"
      >
        <SafeText className="block truncate">{schedule.name}</SafeText>
      </Link>
      <span className="min-w-0 max-md:basis-full">
        <span className="block truncate" title={cron?.expression}>
          {describeTimes(schedule)}
          {cron !== null && <span className="text-muted"> · {cron.timezone}</span>}
        </span>
        {pause !== null && (
          <SafeText className="block truncate text-sm text-muted" limit={300}>
            {pause}
          </SafeText>
        )}
      </span>
      <span className="text-muted">
        {next === null ? (
          <span className="max-md:hidden">–</span>
        ) : (
          <>
            <span className="md:hidden">Next </span>
            <span title={`${formatInZone(next, cron?.timezone ?? "UTC")} ${cron?.timezone ?? ""}`}>
              <Time value={next} />
            </span>
          </>
        )}
      </span>
      <LastRun schedule={schedule} />
    </li>
  );
}

function LastRun({ schedule }: { schedule: Schedule }) {
  const { data: run, isPending } = useQuery(lastRunQuery(schedule.id));
  if (isPending) {
    return <Skeleton className="h-3 w-24" />;
  }
  if (run === undefined || run === null) {
    return <span className="text-muted max-md:hidden">none yet</span>;
  }
  return (
    <span className="flex items-center gap-2 max-md:ml-auto">
      <RunOutcome run={run} />
      <Time value={run.created_at} className="truncate text-muted" />
    </span>
  );
}

function Nothing({ isFiltered, canOperate }: { isFiltered: boolean; canOperate: boolean }) {
  const navigate = useNavigate();
  if (isFiltered) {
    return (
      <EmptyState
        title="No schedule has this status"
        action={<Button onClick={() => void navigate({ to: "/schedules", search: {} })}>Show all schedules</Button>}
      />
    );
  }
  return (
    <EmptyState
      title="No schedules yet"
      command={'footplate schedules create --cron "0 9 * * 1-5" "Check the build"'}
      {...(canOperate
        ? {
            action: (
              <Link to="/schedules/new" className={buttonStyle({ variant: "secondary" })}>
                Create a schedule
              </Link>
            ),
          }
        : {})}
    >
      A schedule starts a session at set times, such as every morning, or on request.
    </EmptyState>
  );
}
