// A session in the list: one line, two on a phone. Its link covers the row; the list handles the click.
import { CornerDownRight, GitFork, Pin } from "lucide-react";
import { memo } from "react";

import { cn } from "@/design/classes";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";

import { Activity } from "./activity";
import type { SessionRow as Row } from "./rows";

export const ROW_HEIGHT = 36;
export const PHONE_ROW_HEIGHT = 64;

/** The columns of the header and of the rows. */
export const COLUMNS =
  "grid grid-cols-[16px_96px_minmax(0,5fr)_minmax(0,6fr)_96px_64px_48px] gap-x-3 xl:grid-cols-[16px_96px_minmax(0,5fr)_minmax(0,6fr)_96px_176px_56px_64px_48px]";

export function sessionPath(id: string): string {
  return `/sessions/${encodeURIComponent(id)}`;
}

interface Props {
  row: Row;
  index: number;
  /** Rows of the list, as far as they are known. */
  total: number;
  top: number;
  isCursor: boolean;
  isSelected: boolean;
  isPhone: boolean;
  onSelect: (index: number, isRange: boolean) => void;
}

export const SessionRow = memo(function SessionRow(props: Props) {
  const { row, index, total, top, isCursor, isSelected, isPhone, onSelect } = props;
  return (
    <div
      role="listitem"
      aria-posinset={index + 1}
      aria-setsize={total}
      aria-current={isCursor ? "true" : undefined}
      data-index={index}
      data-selected={isSelected || undefined}
      style={{ transform: `translateY(${top}px)` }}
      className={cn(
        "group absolute inset-x-0 top-0 border-b border-l-2 contain-strict border-l-transparent hover:bg-hover data-selected:bg-selected",
        isCursor && "border-l-accent bg-hover",
        isPhone ? "flex h-16 items-center gap-3 px-4" : `h-9 items-center px-4 ${COLUMNS}`,
      )}
    >
      <input
        type="checkbox"
        tabIndex={-1}
        checked={isSelected}
        aria-label={`Select ${row.title}`}
        className={cn(
          "relative z-10 size-4 accent-accent",
          !isSelected &&
            !isCursor &&
            "opacity-0 group-hover:opacity-100 focus-visible:opacity-100 pointer-coarse:opacity-60",
        )}
        onClick={(event) => {
          onSelect(index, event.shiftKey);
        }}
        onChange={() => undefined}
      />
      {isPhone ? <PhoneCells row={row} /> : <Cells row={row} />}
    </div>
  );
});

function Cells({ row }: { row: Row }) {
  return (
    <>
      <State state={row.state} />
      <Title row={row} />
      <Activity row={row} />
      <SafeText className="truncate text-muted">{row.projects}</SafeText>
      <span className="flex gap-1.5 text-muted max-xl:hidden" title={row.agent}>
        <SafeText className="truncate">{row.agent}</SafeText>
        {row.harness !== null && <span className="shrink-0 text-muted">{row.harness}</span>}
      </span>
      <span className="text-right text-muted max-xl:hidden" title={`${row.tokens.toLocaleString()} tokens`}>
        {row.tokens === 0 ? "–" : formatTokens(row.tokens)}
      </span>
      <span className="text-right">{formatMoney(row.cost)}</span>
      <Time value={row.createdAt} short className="text-right whitespace-nowrap text-muted" />
    </>
  );
}

function PhoneCells({ row }: { row: Row }) {
  return (
    <>
      <State state={row.state} iconOnly />
      <span className="flex min-w-0 flex-1 flex-col">
        <span className="flex items-center gap-2">
          <Title row={row} className="flex-1" />
          <Time value={row.createdAt} short className="shrink-0 text-sm text-muted" />
        </span>
        <span className="flex gap-2 text-sm">
          <Activity row={row} className="flex-1" />
          <span className="shrink-0 text-muted">{formatMoney(row.cost)}</span>
        </span>
      </span>
    </>
  );
}

interface TitleProps {
  row: Row;
  className?: string;
  /** After how many lines it is cut. */
  lines?: 1 | 2;
}

export function Title({ row, className, lines = 1 }: TitleProps) {
  return (
    <span className={cn("flex min-w-0 items-center gap-1.5", className)}>
      {row.parentId !== null && <CornerDownRight aria-label="child session" className="size-3.5 shrink-0 text-faint" />}
      {row.isFork && <GitFork aria-label="fork" className="size-3.5 shrink-0 text-faint" />}
      <a
        href={sessionPath(row.id)}
        data-session={row.id}
        tabIndex={-1}
        title={row.title}
        className="min-w-0 font-medium outline-none after:absolute after:inset-0"
      >
        <SafeText className={cn("text-left", lines === 1 ? "block truncate" : "line-clamp-2 break-words")}>
          {row.title}
        </SafeText>
      </a>
      {row.isPinned && <Pin aria-label="pinned" className="size-3.5 shrink-0 fill-current text-faint" />}
    </span>
  );
}
