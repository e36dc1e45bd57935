// Reads everything that the page shows.
import { useQuery } from "@tanstack/react-query";

import {
  MAX_LINES,
  namesQuery,
  usageInPartsQuery,
  usageQuery,
  type UsageGrouping,
  type UsageLine,
  usedSessionsQuery,
} from "@/api/queries/usage";

import { buildChart, type ChartData, largestKeys } from "./chart-data";
import { figuresOf, keyOf, type Measure, NOTHING, type UsageRow } from "./figures";
import { boundsOf, formatFullDay, type Period, splitPeriod } from "./period";

const NO_LINES: readonly UsageLine[] = [];
const WITHOUT: Record<UsageGrouping, string> = {
  day: "No day",
  model: "No model",
  agent: "No agent",
  project: "No project",
  member: "No member",
};

/** The figures of the whole period. */
export function useTotals(period: Period) {
  const bounds = boundsOf(period);
  const total = useQuery(usageQuery(bounds));
  const sessions = useQuery(usedSessionsQuery(bounds));
  const line = total.data?.data[0];
  return {
    total,
    figures: total.data === undefined ? undefined : line === undefined ? NOTHING : figuresOf(line),
    sessions: sessions.data,
  };
}

/** Names of agents and projects, which the report gives by id. */
function useNames(grouping: UsageGrouping): Record<string, string> {
  const agents = useQuery({ ...namesQuery("agents"), enabled: grouping === "agent" });
  const projects = useQuery({ ...namesQuery("projects"), enabled: grouping === "project" });
  return (grouping === "agent" ? agents.data : grouping === "project" ? projects.data : undefined) ?? {};
}

export function useRows(period: Period, grouping: UsageGrouping) {
  const list = useQuery(usageQuery({ ...boundsOf(period), group_by: [grouping] }));
  const names = useNames(grouping);
  const rows = (list.data?.data ?? NO_LINES).map((line): UsageRow => {
    const key = keyOf(line, grouping);
    return { ...figuresOf(line), key, name: nameOf(line, key, grouping, names) };
  });
  return { list, rows };
}

function nameOf(
  line: UsageLine,
  key: string | null,
  grouping: UsageGrouping,
  names: Readonly<Record<string, string>>,
): string {
  if (key === null) {
    return WITHOUT[grouping];
  }
  switch (grouping) {
    case "day":
      return formatFullDay(key);
    case "member":
      return line.member_name ?? key;
    default:
      return names[key] ?? key;
  }
}

/** The chart, or undefined while it is being loaded. */
export function useChart(
  period: Period,
  grouping: UsageGrouping,
  measure: Measure,
  /** Undefined: they are not loaded yet. */
  rows: readonly UsageRow[] | undefined,
) {
  const keys = grouping === "day" || rows === undefined ? [] : largestKeys(rows, measure);
  const days = useQuery(usageQuery({ ...boundsOf(period), group_by: ["day"] }));
  const group = grouping === "day" ? undefined : grouping;
  const perPart = Math.max(1, Math.floor(MAX_LINES / Math.max(1, keys.length)));
  const parts = useQuery({
    ...usageInPartsQuery(
      group === undefined
        ? []
        : splitPeriod(period, perPart).map((part) => ({
            ...boundsOf(part),
            group_by: ["day", group] as const,
            only: { group, values: keys },
          })),
    ),
    enabled: keys.length > 0,
  });
  const hasParts = keys.length === 0 || parts.data !== undefined;
  const data: ChartData | undefined =
    days.data === undefined || rows === undefined || !hasParts
      ? undefined
      : buildChart({ period, measure, grouping, rows, keys, days: days.data.data, parts: parts.data ?? NO_LINES });
  return {
    data,
    error: days.error ?? (keys.length > 0 ? parts.error : null),
    retry: () => {
      void days.refetch();
      if (keys.length > 0) {
        void parts.refetch();
      }
    },
  };
}
