// The report as a table: one row for each group, which can be sorted.
import { Link } from "@tanstack/react-router";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useEffect, useRef } from "react";

import type { UsageGrouping } from "@/api/queries/usage";
import { cn } from "@/design/classes";
import { CELL, TABLE, WIDE_ONLY } from "@/design/components/table";
import { formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";
import type { readSessionsSearch } from "@/pages/sessions/search";

import { Cost } from "./cost";
import { MEASURE_TITLES } from "./amounts";
import { type Column, type Figures, formatShare, type Measure, shareOf, type UsageRow } from "./figures";
import { GROUPING_TITLES } from "./toolbar";

const COLUMN_TITLES: Record<Exclude<Column, "name">, string> = {
  cost: "Cost",
  input: "Tokens in",
  output: "Tokens out",
  turns: "Turns",
  completed: "Completed",
};
const NUMBER_COLUMNS = Object.keys(COLUMN_TITLES) as Exclude<Column, "name">[];

/** The address of the sessions of a row, or null: the list of sessions has no such filter. */
export function sessionsOf(grouping: UsageGrouping, key: string | null): ReturnType<typeof readSessionsSearch> | null {
  if (key === null) {
    return null;
  }
  switch (grouping) {
    case "agent":
      return { agent_id: key };
    case "project":
      return { project_id: key };
    case "member":
      return { owner_id: key };
    default:
      return null;
  }
}

/** A row without a value of the group can be selected too. */
export function rowId(row: UsageRow): string {
  return row.key ?? "none";
}

interface Props {
  rows: readonly UsageRow[];
  total: Figures;
  grouping: UsageGrouping;
  measure: Measure;
  sort: Column;
  isAscending: boolean;
  selected: string | undefined;
  onSort: (column: Column) => void;
}

export function UsageTable({ rows, total, grouping, measure, sort, isAscending, selected, onSort }: Props) {
  const heading = { sort, isAscending, onSort };
  return (
    <table aria-label={`Usage by ${grouping}`} className={TABLE}>
      <thead>
        <tr className="text-sm text-muted">
          <Heading {...heading} column="name" title={GROUPING_TITLES[grouping]} className="text-left" />
          <Heading {...heading} column="cost" title={COLUMN_TITLES.cost} />
          <th scope="col" className={cn(CELL, "border-t text-right font-normal")}>
            <span title={`Share of ${MEASURE_TITLES[measure].toLowerCase()}`}>Share</span>
          </th>
          {NUMBER_COLUMNS.filter((column) => column !== "cost").map((column) => (
            <Heading key={column} {...heading} column={column} title={COLUMN_TITLES[column]} className={WIDE_ONLY} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row
            key={rowId(row)}
            row={row}
            share={shareOf(row, total, measure)}
            grouping={grouping}
            isSelected={rowId(row) === selected}
          />
        ))}
      </tbody>
    </table>
  );
}

interface HeadingProps {
  column: Column;
  title: string;
  sort: Column;
  isAscending: boolean;
  className?: string;
  onSort: (column: Column) => void;
}

function Heading({ column, title, sort, isAscending, className, onSort }: HeadingProps) {
  const isSorted = column === sort;
  const Icon = isAscending ? ArrowUp : ArrowDown;
  return (
    <th
      scope="col"
      aria-sort={isSorted ? (isAscending ? "ascending" : "descending") : undefined}
      className={cn(CELL, "border-t text-right font-normal", className)}
    >
      <button
        type="button"
        className="inline-flex h-8 items-center gap-1 whitespace-nowrap hover:text-text max-md:h-11"
        onClick={() => {
          onSort(column);
        }}
      >
        {title}
        {/* On the side where it does not move the title away from its column. */}
        <Icon aria-hidden className={cn("size-3.5", column !== "name" && "-order-1", !isSorted && "invisible")} />
      </button>
    </th>
  );
}

interface RowProps {
  row: UsageRow;
  share: number | null;
  grouping: UsageGrouping;
  isSelected: boolean;
}

function Row({ row, share, grouping, isSelected }: RowProps) {
  const element = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (isSelected) {
      element.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isSelected]);
  const sessions = sessionsOf(grouping, row.key);
  const number = cn(CELL, "text-right whitespace-nowrap");
  const name = <SafeText className={cn("block truncate", row.key === null && "text-muted")}>{row.name}</SafeText>;
  return (
    <tr
      ref={element}
      aria-current={isSelected ? "true" : undefined}
      className="group scroll-mt-12 hover:bg-hover aria-[current]:bg-selected"
    >
      <th
        scope="row"
        className={cn(
          CELL,
          "w-full max-w-0 py-1.5 text-left font-medium group-aria-[current]:shadow-[inset_2px_0_0_var(--accent)]",
        )}
      >
        {sessions === null ? (
          <span title={row.name}>{name}</span>
        ) : (
          <Link to="/sessions" search={sessions} title="Show its sessions" className="block hover:underline">
            {name}
          </Link>
        )}
        <span className="block truncate text-sm font-normal text-muted md:hidden">
          {`${formatTokens(row.input)} in, ${formatTokens(row.output)} out, ${countTurns(row.turns)}`}
        </span>
      </th>
      <td className={number}>
        <Cost figures={row} className={row.cost === null ? "text-muted" : undefined} />
      </td>
      <td className={cn(number, "min-w-28 max-md:min-w-0")}>
        {share === null ? (
          <span className="text-muted">–</span>
        ) : (
          <span className="flex items-center justify-end gap-2">
            <svg aria-hidden className="h-1.5 w-12 max-md:hidden">
              <rect width="100%" height="100%" rx="3" fill="var(--hover)" />
              <rect width={`${share * 100}%`} height="100%" rx="3" fill="var(--chart-1)" />
            </svg>
            <span className="w-10">{formatShare(share)}</span>
          </span>
        )}
      </td>
      <td className={cn(number, WIDE_ONLY)} title={`Another ${formatTokens(row.cached)} were read from the cache.`}>
        {formatTokens(row.input)}
      </td>
      <td className={cn(number, WIDE_ONLY)}>{formatTokens(row.output)}</td>
      <td className={cn(number, WIDE_ONLY)}>{row.turns.toLocaleString("en-US")}</td>
      <td className={cn(number, WIDE_ONLY)} title="The share of ended turns that completed">
        {row.completed === null ? <span className="text-muted">–</span> : `${Math.floor(row.completed * 100)}%`}
      </td>
    </tr>
  );
}

function countTurns(turns: number): string {
  return turns === 1 ? "1 turn" : `${turns.toLocaleString("en-US")} turns`;
}
