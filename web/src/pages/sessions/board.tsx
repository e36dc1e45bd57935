// The sessions in columns by state. A column is read when it comes into view.
import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, type RefObject, useEffect, useRef, useState, useSyncExternalStore } from "react";

import type { SessionState } from "@/api/session-state";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { Skeleton } from "@/design/components/skeleton";
import { State } from "@/design/components/state";
import { Time } from "@/design/components/time";
import { formatMoney } from "@/design/format";
import { SafeText } from "@/design/text/text";

import { Activity } from "./activity";
import type { RowPages } from "./row-pages";
import type { SessionRow } from "./rows";
import { Title } from "./session-row";
import { moveWithArrows, useAnchor, useCursorInView } from "./use-scroll";

const CARD_HEIGHT = 104;
const AHEAD = 20;

export interface Column {
  state: SessionState;
  pages: RowPages;
}

interface Props {
  columns: readonly Column[];
  counts: Partial<Record<SessionState, number>>;
  cursorId: string | null;
  selected: ReadonlyMap<string, unknown>;
  onSelect: (row: SessionRow) => void;
  onMove: (step: number) => void;
  isPhone: boolean;
}

export function Board({ columns, counts, cursorId, selected, onSelect, onMove, isPhone }: Props) {
  const navigate = useNavigate();
  function onClick(event: MouseEvent): void {
    const link = event.target instanceof Element ? event.target.closest("[data-session]") : null;
    const id = link?.getAttribute("data-session");
    if (id == null || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    event.preventDefault();
    void navigate({ to: "/sessions/$sessionId", params: { sessionId: id } });
  }
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events -- the clicks are of the links in it
    <div className="flex min-h-0 flex-1 overflow-x-auto" onClick={onClick}>
      {columns.map(({ state, pages }) => (
        <BoardColumn
          key={state}
          state={state}
          pages={pages}
          count={counts[state]}
          cursorId={cursorId}
          selected={selected}
          onSelect={onSelect}
          onMove={onMove}
          isPhone={isPhone}
        />
      ))}
    </div>
  );
}

interface ColumnProps extends Omit<Props, "columns" | "counts">, Column {
  count: number | undefined;
}

function BoardColumn({ state, pages, count, cursorId, selected, onSelect, onMove, isPhone }: ColumnProps) {
  const { rows, isLoaded, hasMore, error } = useSyncExternalStore(pages.subscribe, pages.getSnapshot);
  const section = useRef<HTMLElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const isSeen = useIsSeen(section);
  // oxlint-disable-next-line react/incompatible-library -- nothing of it is passed on
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => CARD_HEIGHT,
    overscan: 4,
    initialOffset: pages.scrollTop,
    useFlushSync: false,
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (isSeen && error === null && (!isLoaded || (hasMore && last > rows.length - AHEAD))) {
      void pages.loadMore();
    }
    pages.show(first, last);
  }, [pages, isSeen, isLoaded, hasMore, error, first, last, rows.length]);
  useAnchor(pages, scroller, CARD_HEIGHT);
  useCursorInView(scroller, cursorId === null ? -1 : pages.indexOf(cursorId), cursorId, CARD_HEIGHT);
  return (
    <section
      ref={section}
      aria-label={`Sessions: ${state.replace("_", " ")}`}
      className={cn("flex min-h-0 flex-1 flex-col border-r last:border-r-0", isPhone ? "min-w-full" : "min-w-48")}
    >
      {!isPhone && (
        <h2 className="flex h-9 shrink-0 items-center gap-2 border-b bg-surface px-3">
          <State state={state} />
          <span className="text-sm text-muted">{count?.toLocaleString()}</span>
        </h2>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the arrow keys move the cursor in it */}
      <div
        ref={scroller}
        role="group"
        aria-label="Cards"
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
        tabIndex={0}
        className="min-h-0 flex-1 overflow-y-auto outline-offset-[-2px] [overflow-anchor:none]"
        onKeyDown={(event) => {
          moveWithArrows(event, onMove);
        }}
      >
        {!isLoaded && error === null && (
          <div role="status" aria-label="Loading" className="flex flex-col gap-3 p-3">
            <Skeleton className="h-4 w-3/4" />
            <Skeleton className="h-4 w-1/2" />
          </div>
        )}
        {error !== null && rows.length === 0 && (
          <ErrorPanel className="m-2" title="Not loaded" error={error} onRetry={() => void pages.loadMore()} />
        )}
        {isLoaded && rows.length === 0 && <p className="px-3 py-4 text-sm text-faint">None</p>}
        {rows.length > 0 && (
          <div role="list" data-roving className="relative" style={{ height: rows.length * CARD_HEIGHT }}>
            {items.map(({ index, start }) => {
              const row = rows[index];
              return row === undefined ? null : (
                <Card
                  key={row.id}
                  row={row}
                  top={start}
                  isCursor={row.id === cursorId}
                  isSelected={selected.has(row.id)}
                  onSelect={onSelect}
                />
              );
            })}
          </div>
        )}
        {error !== null && rows.length > 0 && (
          <Button size="sm" className="m-3" onClick={() => void pages.loadMore()}>
            Try to load more
          </Button>
        )}
      </div>
    </section>
  );
}

interface CardProps {
  row: SessionRow;
  top: number;
  isCursor: boolean;
  isSelected: boolean;
  onSelect: (row: SessionRow) => void;
}

function Card({ row, top, isCursor, isSelected, onSelect }: CardProps) {
  return (
    <div
      role="listitem"
      aria-current={isCursor ? "true" : undefined}
      data-selected={isSelected || undefined}
      style={{ transform: `translateY(${top}px)`, height: CARD_HEIGHT }}
      className={cn(
        "group absolute inset-x-0 top-0 contain-strict flex flex-col justify-center gap-0.5 border-b border-l-2 border-l-transparent px-3 hover:bg-hover data-selected:bg-selected",
        isCursor && "border-l-accent bg-hover",
      )}
    >
      <span className="flex items-start gap-2">
        <Title row={row} className="flex-1" lines={2} />
        <input
          type="checkbox"
          tabIndex={-1}
          checked={isSelected}
          aria-label={`Select ${row.title}`}
          className={cn(
            "relative z-10 size-4 accent-accent",
            !isSelected && !isCursor && "opacity-0 group-hover:opacity-100 pointer-coarse:opacity-60",
          )}
          onChange={() => {
            onSelect(row);
          }}
        />
      </span>
      <Activity row={row} className="text-sm" />
      <span className="flex gap-2 text-sm text-muted">
        <SafeText className="min-w-0 truncate">{row.projects === "" ? row.agent : row.projects}</SafeText>
        <span className="ml-auto shrink-0">{formatMoney(row.cost)}</span>
        <Time value={row.createdAt} short className="shrink-0" />
      </span>
    </div>
  );
}

/** Whether the element has ever been in view. */
function useIsSeen(element: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (element.current === null || isSeen) {
      return undefined;
    }
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        setSeen(true);
      }
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
    };
  }, [element, isSeen]);
  return isSeen;
}
