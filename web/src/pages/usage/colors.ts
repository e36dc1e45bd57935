// The colours of the series. They are defined in `design/styles.css` for both themes.
import type { ChartData } from "./chart-data";

export function seriesColor(data: ChartData, index: number): string {
  return data.hasRest && index === data.series.length - 1 ? "var(--chart-rest)" : `var(--chart-${index + 1})`;
}
