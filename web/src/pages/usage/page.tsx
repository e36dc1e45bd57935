// Usage: what was spent and on what, in a period, by day, model, agent, project or member.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { type UsageGrouping } from "@/api/queries/usage";
import { buttonStyle } from "@/design/components/button";
import { copyText, CopyButton } from "@/design/components/copy";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { useNow } from "@/design/components/time";
import { showToast } from "@/design/components/toast";
import { saveFile } from "@/design/save-file";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";
import { useListKeys } from "@/frame/use-list-keys";

import { ChartSection } from "./chart-section";
import { fileName, toCommand, toCsv } from "./export";
import { type Column, COLUMNS, GROUPINGS, type Measure, MEASURES, NOTHING, sortRows } from "./figures";
import { OwnPeriodDialog } from "./own-period";
import { dayOf, DEFAULT_PRESET, type Period, presetPeriod, PRESETS, previousPeriod } from "./period";
import type { UsageChange } from "./search";
import { rowId, sessionsOf, UsageTable } from "./table";
import { Toolbar } from "./toolbar";
import { Totals } from "./totals";
import { useChart, useRows, useTotals } from "./use-usage";

const route = getRouteApi("/frame/usage");
const MINUTE_MS = 60_000;
const DEFAULT_GROUPING: UsageGrouping = "model";

/** The entry that follows another one, around the end. */
function following<T>(all: readonly T[], one: T, step = 1): T {
  return all[(all.indexOf(one) + step + all.length) % all.length] ?? one;
}

export default function UsagePage() {
  usePageTitle("Usage");
  const search = route.useSearch();
  const navigate = useNavigate();
  const { data: me } = useQuery(meQuery);
  const [isChoosing, setChoosing] = useState(false);

  const today = dayOf(useNow(MINUTE_MS));
  const isOwn = search.from !== undefined && search.to !== undefined;
  const preset = isOwn ? null : (search.period ?? DEFAULT_PRESET);
  const period: Period =
    preset === null ? { from: search.from ?? today, to: search.to ?? today } : presetPeriod(preset, today);
  const grouping = search.by ?? DEFAULT_GROUPING;
  const measure: Measure = search.measure ?? "cost";
  const sort: Column = search.sort ?? (grouping === "day" ? "name" : "cost");
  const isAscending = (search.order ?? (sort === "name" && grouping !== "day" ? "asc" : "desc")) === "asc";

  const before = previousPeriod(period, preset);
  const now = useTotals(period);
  const past = useTotals(before);
  const { list, rows: unsorted } = useRows(period, grouping);
  const rows = sortRows(unsorted, sort, isAscending);
  const chart = useChart(period, grouping, measure, list.data === undefined ? undefined : unsorted);
  const total = now.figures ?? NOTHING;
  const selected = rows.find((row) => rowId(row) === search.selected);
  const selectedSessions = selected === undefined ? null : sessionsOf(grouping, selected.key);
  const command = toCommand(period, grouping);

  function go(change: UsageChange, replace = false): void {
    void navigate({ to: "/usage", search: compact({ ...search, ...change }), replace });
  }
  function showPeriod(change: Pick<UsageChange, "period" | "from" | "to">): void {
    go({ period: undefined, from: undefined, to: undefined, ...change });
  }
  function group(by: UsageGrouping): void {
    go({ by, sort: undefined, order: undefined, selected: undefined });
  }
  function sortBy(column: Column): void {
    const order = column === sort && !isAscending ? "asc" : column === sort ? "desc" : undefined;
    go({ sort: column, order }, true);
  }
  function showMeasure(next: Measure): void {
    go({ measure: next === "cost" ? undefined : next }, true);
  }

  useListKeys({
    next: "usage.next",
    previous: "usage.previous",
    count: rows.length,
    selected: selected === undefined ? -1 : rows.indexOf(selected),
    onSelect: (index) => {
      const row = rows[index];
      go({ selected: row === undefined ? undefined : rowId(row) }, true);
    },
  });
  useActions({
    ...Object.fromEntries(
      PRESETS.map((each) => [
        `usage.period-${each}`,
        () => {
          showPeriod({ period: each });
        },
      ]),
    ),
    ...Object.fromEntries(
      GROUPINGS.map((each) => [
        `usage.by-${each}`,
        () => {
          group(each);
        },
      ]),
    ),
    "usage.period-own": () => {
      setChoosing(true);
    },
    "usage.next-group": () => {
      group(following(GROUPINGS, grouping));
    },
    "usage.previous-group": () => {
      group(following(GROUPINGS, grouping, -1));
    },
    "usage.measure": () => {
      showMeasure(following(MEASURES, measure));
    },
    "usage.copy-command": () => {
      void copyText(command).then((isCopied) => {
        if (isCopied) {
          showToast({ title: "Command copied" });
        }
      });
    },
    ...(rows.length > 0
      ? {
          "usage.sort": () => {
            sortBy(following(COLUMNS, sort));
          },
          "usage.reverse": () => {
            sortBy(sort);
          },
          "usage.download-csv": () => {
            saveFile(
              fileName(period, grouping, "csv"),
              new Blob([toCsv(rows, grouping)], { type: "text/csv;charset=utf-8" }),
            );
          },
          "usage.download-json": () => {
            saveFile(
              fileName(period, grouping, "json"),
              new Blob([JSON.stringify(list.data, null, 2)], { type: "application/json" }),
            );
          },
        }
      : {}),
    ...(selectedSessions === null
      ? {}
      : { "usage.open": () => void navigate({ to: "/sessions", search: selectedSessions }) }),
  });

  const failed = now.total.error ?? list.error;
  const isEmpty = now.total.isSuccess && list.isSuccess && rows.length === 0;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Toolbar
        preset={preset}
        period={period}
        grouping={grouping}
        onPreset={(next) => {
          showPeriod({ period: next });
        }}
        onOwnPeriod={() => {
          setChoosing(true);
        }}
        onGrouping={group}
      />
      <div className="min-h-0 flex-1 overflow-y-auto">
        {failed !== null && (now.figures === undefined || list.data === undefined) ? (
          <ErrorPanel
            className="m-4"
            title="The usage could not be loaded"
            error={failed}
            onRetry={() => {
              void now.total.refetch();
              void list.refetch();
            }}
          />
        ) : isEmpty ? (
          <Nothing canOperate={me?.permissions.includes("operate") ?? false} preset={preset} />
        ) : (
          <>
            <Totals
              figures={now.figures}
              sessions={now.sessions}
              before={{ period: before, figures: past.figures, sessions: past.sessions }}
            />
            <ChartSection
              chart={chart}
              grouping={grouping}
              measure={measure}
              isCostUnknown={now.figures?.cost === null && now.figures.unpricedTurns > 0}
              onMeasure={showMeasure}
            />
            {list.data === undefined ? (
              <SkeletonRows count={5} />
            ) : (
              <UsageTable
                rows={rows}
                total={total}
                grouping={grouping}
                measure={measure}
                sort={sort}
                isAscending={isAscending}
                selected={search.selected}
                onSort={sortBy}
              />
            )}
            <footer className="flex flex-col gap-1 px-4 py-4 text-sm text-muted">
              {list.data?.has_more === true && (
                <p className="text-waiting">
                  Only the first 1,000 rows are shown. Choose a shorter period to see the others.
                </p>
              )}
              <p>
                Days are in UTC. Deleted sessions are not included
                {me?.permissions.includes("manage_members") === true ? "." : ", nor are sessions that you cannot see."}
              </p>
              <div className="flex max-w-full items-center gap-1">
                <code className="min-w-0 truncate font-mono">{command}</code>
                <CopyButton text={command} label="the command" />
              </div>
            </footer>
          </>
        )}
      </div>
      {isChoosing && (
        <OwnPeriodDialog
          period={period}
          onClose={() => {
            setChoosing(false);
          }}
          onApply={(chosen) => {
            setChoosing(false);
            showPeriod(chosen);
          }}
        />
      )}
    </div>
  );
}

function Nothing({ canOperate, preset }: { canOperate: boolean; preset: string | null }) {
  return (
    <EmptyState
      title="No turn started in this period"
      command='footplate run "Make the tests pass"'
      action={
        preset === "90d" ? (
          canOperate && (
            <Link to="/new" className={buttonStyle({ variant: "secondary" })}>
              New session
            </Link>
          )
        ) : (
          <Link to="/usage" search={{ period: "90d" }} className={buttonStyle({ variant: "secondary" })}>
            Show 90 days
          </Link>
        )
      }
    >
      Usage shows the cost, tokens and turns of sessions as soon as an agent works.
    </EmptyState>
  );
}
