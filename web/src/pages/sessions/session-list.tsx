// The rows of a list of sessions, of which only the visible ones exist in the page. Changes never move what is being read.
import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, type ReactNode, useEffect, useRef, useSyncExternalStore } from "react";

import { Button } from "@/design/components/button";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";

import type { RowPages } from "./row-pages";
import { moveWithArrows, useAnchor, useCursorInView } from "./use-scroll";
import { PHONE_ROW_HEIGHT, ROW_HEIGHT, SessionRow } from "./session-row";

/** Rows before the end at which the next page is read. */
const AHEAD = 60;
const OVERSCAN = 8;

interface Props {
  pages: RowPages;
  label: string;
  total: number | undefined;
  cursorId: string | null;
  selected: ReadonlyMap<string, unknown>;
  isPhone: boolean;
  header?: ReactNode;
  empty: ReactNode;
  onSelect: (index: number, isRange: boolean) => void;
  onMove: (step: number) => void;
}

export function SessionList(props: Props) {
  const { pages, label, total, cursorId, selected, isPhone, header, empty, onSelect, onMove } = props;
  const { rows, isLoaded, isLoading, hasMore, error } = useSyncExternalStore(pages.subscribe, pages.getSnapshot);
  const navigate = useNavigate();
  const scroller = useRef<HTMLDivElement>(null);
  const height = isPhone ? PHONE_ROW_HEIGHT : ROW_HEIGHT;
  // oxlint-disable-next-line react/incompatible-library -- nothing of it is passed on
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    initialOffset: pages.scrollTop,
    useFlushSync: false,
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;

  useEffect(() => {
    if (!isLoaded && error === null) {
      void pages.loadMore();
    }
  }, [pages, isLoaded, error]);
  useEffect(() => {
    pages.show(first, last);
    if (hasMore && isLoaded && error === null && last > rows.length - AHEAD) {
      void pages.loadMore();
    }
  }, [pages, first, last, rows.length, hasMore, isLoaded, error]);
  useEffect(() => {
    virtualizer.measure();
  }, [virtualizer, height]);
  useAnchor(pages, scroller, height);
  useCursorInView(scroller, cursorId === null ? -1 : pages.indexOf(cursorId), cursorId, height);

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
    <div className="flex min-h-0 flex-1 flex-col">
      {header}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the clicks are of the links in it */}
      <div
        ref={scroller}
        data-testid="rows"
        role="region"
        aria-label={`${label}, which can be scrolled`}
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a box that scrolls must be reachable by keyboard
        tabIndex={0}
        className="min-h-0 flex-1 overflow-y-auto outline-offset-[-2px] [overflow-anchor:none]"
        onClick={onClick}
        onKeyDown={(event) => {
          moveWithArrows(event, onMove);
        }}
      >
        {!isLoaded && error === null && <SkeletonRows />}
        {error !== null && rows.length === 0 && (
          <ErrorPanel
            className="m-4"
            title="The sessions could not be loaded"
            error={error}
            onRetry={() => void pages.loadMore()}
          />
        )}
        {isLoaded && rows.length === 0 && !hasMore && empty}
        {rows.length > 0 && (
          <div role="list" aria-label={label} data-roving className="relative" style={{ height: rows.length * height }}>
            {items.map(({ index, start }) => {
              const row = rows[index];
              return row === undefined ? null : (
                <SessionRow
                  key={row.id}
                  row={row}
                  index={index}
                  total={total ?? -1}
                  top={start}
                  isCursor={row.id === cursorId}
                  isSelected={selected.has(row.id)}
                  isPhone={isPhone}
                  onSelect={onSelect}
                />
              );
            })}
          </div>
        )}
        {isLoaded && isLoading && <SkeletonRows count={3} />}
        {error !== null && rows.length > 0 && (
          <div className="flex items-center gap-3 px-4 py-2 text-muted">
            More sessions could not be loaded.
            <Button size="sm" onClick={() => void pages.loadMore()}>
              Try again
            </Button>
          </div>
        )}
      </div>
    </div>
  );
}
