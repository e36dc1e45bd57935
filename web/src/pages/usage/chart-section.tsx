// The chart with the choice of what it measures, its legend, and what is shown in its place if there is none.
import { Suspense } from "react";

import type { UsageGrouping } from "@/api/queries/usage";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Skeleton } from "@/design/components/skeleton";
import { Tab, TabList, Tabs } from "@/design/components/tabs";
import { SafeText } from "@/design/text/text";
import { lazyPart } from "@/frame/lazy-part";

import { MEASURE_TITLES } from "./amounts";
import type { ChartData } from "./chart-data";
import { seriesColor } from "./colors";
import { type Measure, MEASURES } from "./figures";

const UsageChart = lazyPart("The chart", () => import("./chart"));

interface Props {
  chart: { data: ChartData | undefined; error: Error | null; retry: () => void };
  grouping: UsageGrouping;
  measure: Measure;
  /** Whether no cost of the period is known. */
  isCostUnknown: boolean;
  onMeasure: (measure: Measure) => void;
}

export function ChartSection({ chart, grouping, measure, isCostUnknown, onMeasure }: Props) {
  const { data } = chart;
  const step = data?.isWeekly === true ? "week" : "day";
  return (
    <section aria-label="Chart" className="flex flex-col gap-2 px-4 pb-4">
      <Tabs
        value={measure}
        onValueChange={(next: Measure) => {
          onMeasure(next);
        }}
      >
        <TabList label="Measure" className="px-0">
          {MEASURES.map((each) => (
            <Tab key={each} value={each}>
              {MEASURE_TITLES[each]}
            </Tab>
          ))}
        </TabList>
      </Tabs>
      <div className="h-60">
        {measure === "cost" && isCostUnknown ? (
          <div className="flex h-full flex-col items-center justify-center gap-3 text-center">
            <p className="text-muted">No price is known for the models of this period.</p>
            <Button
              onClick={() => {
                onMeasure("tokens");
              }}
            >
              Show tokens
            </Button>
          </div>
        ) : data !== undefined ? (
          <div
            role="img"
            className="size-full"
            aria-label={`${MEASURE_TITLES[measure]} per ${step}${grouping === "day" ? "" : `, by ${grouping}`}. The table below has the numbers.`}
          >
            <Suspense fallback={<Skeleton className="size-full" />}>
              <UsageChart data={data} measure={measure} />
            </Suspense>
          </div>
        ) : chart.error !== null ? (
          <ErrorPanel title="The chart could not be loaded" error={chart.error} onRetry={chart.retry} />
        ) : (
          <Skeleton className="size-full" />
        )}
      </div>
      {grouping !== "day" && <Legend data={data} />}
    </section>
  );
}

/** Takes its line also while there is none, so that the table does not move. */
function Legend({ data }: { data: ChartData | undefined }) {
  return (
    <ul aria-label="Legend" className="flex min-h-5 flex-wrap gap-x-4 gap-y-1 text-sm">
      {data?.series.map((name, index) => (
        <li key={index} className="flex max-w-64 min-w-0 items-center gap-1.5">
          <svg aria-hidden className="size-2.5 shrink-0">
            <rect width="100%" height="100%" rx="2" fill={seriesColor(data, index)} />
          </svg>
          <SafeText className="truncate">{name}</SafeText>
        </li>
      ))}
    </ul>
  );
}
