// The address of the report: its period, groups, measure and order, and the selected row.
import { compact, type RawSearch, readOneOf, readText } from "@/frame/search";

import { COLUMNS, GROUPINGS, MEASURES } from "./figures";
import { isPossible, PRESETS } from "./period";

export function readUsageSearch(search: RawSearch) {
  const own = { from: readText(search, "from") ?? "", to: readText(search, "to") ?? "" };
  const isOwn = isPossible(own);
  return compact({
    period: isOwn ? undefined : readOneOf(search, "period", PRESETS),
    from: isOwn ? own.from : undefined,
    to: isOwn ? own.to : undefined,
    by: readOneOf(search, "by", GROUPINGS),
    measure: readOneOf(search, "measure", MEASURES),
    sort: readOneOf(search, "sort", COLUMNS),
    order: readOneOf(search, "order", ["asc", "desc"]),
    selected: readText(search, "selected"),
  });
}

export type UsageSearch = ReturnType<typeof readUsageSearch>;
export type UsageChange = { [K in keyof UsageSearch]?: UsageSearch[K] | undefined };
