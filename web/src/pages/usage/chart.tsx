// The chart itself. It is a file of its own because its library is loaded only when a report has something to show.
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";

import { cn } from "@/design/classes";
import { POPUP } from "@/design/components/popup";
import { SafeText } from "@/design/text/text";

import { formatAmount, formatTick } from "./amounts";
import type { ChartData, ChartPoint } from "./chart-data";
import { seriesColor } from "./colors";
import type { Measure } from "./figures";
import { describePeriod, formatDay, formatFullDay } from "./period";

const TICK = { fill: "var(--muted)", fontSize: 12 };
const MARGIN = { top: 8, right: 0, bottom: 0, left: 0 };
const AXIS_WIDTH = 60;
const TICK_GAP = 24;
const WIDEST_BAR = 40;
/** With more bars than this, lines between the series would hide narrow bars on a phone. */
const MAX_SEPARATED = 31;

export default function UsageChart({ data, measure }: { data: ChartData; measure: Measure }) {
  const largest = Math.max(0, ...data.points.map(totalOf));
  return (
    <ResponsiveContainer width="100%" height="100%" initialDimension={{ width: 600, height: 240 }}>
      <BarChart data={data.points} margin={MARGIN} accessibilityLayer={false} barCategoryGap="20%">
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis
          dataKey="from"
          tickFormatter={formatDay}
          tick={TICK}
          tickLine={false}
          axisLine={{ stroke: "var(--line-strong)" }}
          minTickGap={TICK_GAP}
        />
        <YAxis
          tickFormatter={(value: number) => formatTick(value, largest, measure)}
          tick={TICK}
          tickLine={false}
          axisLine={false}
          width={AXIS_WIDTH}
          allowDecimals={measure === "cost"}
        />
        <Tooltip
          isAnimationActive={false}
          cursor={{ fill: "var(--hover)" }}
          content={({ active, payload }) => {
            const point = payload[0]?.payload as ChartPoint | undefined;
            return active && point !== undefined ? <Hint point={point} data={data} measure={measure} /> : null;
          }}
        />
        {data.series.map((name, index) => (
          <Bar
            key={index}
            stackId="amount"
            name={name}
            dataKey={(point: ChartPoint) => point.values[index] ?? 0}
            fill={seriesColor(data, index)}
            stroke="var(--canvas)"
            strokeWidth={data.series.length > 1 && data.points.length <= MAX_SEPARATED ? 1 : 0}
            maxBarSize={WIDEST_BAR}
            isAnimationActive={false}
          />
        ))}
      </BarChart>
    </ResponsiveContainer>
  );
}

function totalOf(point: ChartPoint): number {
  return point.values.reduce((sum, value) => sum + value, 0);
}

function Hint({ point, data, measure }: { point: ChartPoint; data: ChartData; measure: Measure }) {
  const total = totalOf(point);
  return (
    <div className={cn(POPUP, "flex max-w-80 flex-col gap-1 px-3 py-2 text-sm")}>
      <p className="font-medium">{point.from === point.to ? formatFullDay(point.from) : describePeriod(point)}</p>
      {data.series.length > 1 &&
        data.series.map((name, index) => {
          const value = point.values[index] ?? 0;
          return value === 0 ? null : (
            <p key={index} className="flex items-center gap-2">
              <svg aria-hidden className="size-2.5 shrink-0">
                <rect width="100%" height="100%" rx="2" fill={seriesColor(data, index)} />
              </svg>
              <SafeText className="min-w-0 flex-1 truncate">{name}</SafeText>
              <span>{formatAmount(value, measure)}</span>
            </p>
          );
        })}
      <p className="flex justify-between gap-4">
        <span>Total</span>
        <span className="font-medium">{formatAmount(total, measure)}</span>
      </p>
      {measure === "cost" && point.unpricedTurns > 0 && (
        <p className="text-muted">
          {point.unpricedTurns === 1 ? "1 turn has" : `${point.unpricedTurns} turns have`} no known price.
        </p>
      )}
    </div>
  );
}
