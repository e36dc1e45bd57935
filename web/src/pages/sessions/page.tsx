// Sessions: what every agent is doing, as a list or as a board.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ArrowDown, ArrowUp } from "lucide-react";
import { useMemo, useRef, useSyncExternalStore } from "react";

import { useActions } from "@/actions/use-actions";
import { meQuery } from "@/api/queries/me";
import { sessionCountsQuery, sessionQuery } from "@/api/queries/sessions";
import { SESSION_STATES } from "@/api/session-state";
import { usePageTitle } from "@/frame/page-title";
import { compact } from "@/frame/search";

import { Board } from "./board";
import { BulkBar, DeleteDialog, FailuresDialog } from "./bulk-bar";
import { NoSessions } from "./empty";
import { FilterChips } from "./filter-menu";
import { rowPagesOf, useLiveRows } from "./live";
import { type FilterChange, isNarrowed, type SessionsSearch, toFilters } from "./search";
import { SessionList } from "./session-list";
import { COLUMNS } from "./session-row";
import { Toolbar } from "./toolbar";
import { useBulk } from "./use-bulk";
import { useFreeFocus } from "./use-free-focus";
import { PHONE, useMedia } from "./use-media";
import { useSelection } from "./use-selection";

const route = getRouteApi("/frame/sessions");

export default function SessionsPage() {
  usePageTitle("Sessions");
  const search = route.useSearch();
  const navigate = useNavigate();
  const isPhone = useMedia(PHONE);
  const { data: me } = useQuery(meQuery);
  const layout = search.layout ?? "list";
  const filters = toFilters(search);
  const key = JSON.stringify(filters);
  const columns = useMemo(() => {
    const { state, ...others } = filters;
    if (layout === "list") {
      return [];
    }
    return (isPhone ? [state ?? "running"] : SESSION_STATES).map((one) => ({
      state: one,
      pages: rowPagesOf({ ...others, state: one }),
    }));
    // oxlint-disable-next-line react/exhaustive-deps -- the key stands for the filters
  }, [key, layout, isPhone]);
  const list = useMemo(() => rowPagesOf(filters), [key]); // oxlint-disable-line react/exhaustive-deps
  const shown = useMemo(
    () => (layout === "list" ? [list] : columns.map((column) => column.pages)),
    [layout, list, columns],
  );
  useLiveRows(shown, me?.id);
  const { rows } = useSyncExternalStore(list.subscribe, list.getSnapshot);

  const { state: _state, order: _order, ...countFilters } = filters;
  const counts = useQuery(sessionCountsQuery(countFilters));
  const parent = useQuery({ ...sessionQuery(filters.parent_id ?? ""), enabled: filters.parent_id !== undefined });

  function go(change: { [K in keyof SessionsSearch]?: SessionsSearch[K] | undefined }, replace = false): void {
    void navigate({ to: "/sessions", search: compact({ ...search, ...change }), replace });
  }
  function filter(change: FilterChange, options: { replace?: boolean } = {}): void {
    go({ ...change, selected: undefined }, options.replace);
  }
  function clearFilters(): void {
    void navigate({ to: "/sessions", search: compact({ layout: search.layout, order: search.order }) });
  }

  const allRows = () =>
    layout === "list" ? list.getSnapshot().rows : columns.flatMap((one) => one.pages.getSnapshot().rows);
  const isLeaving = useRef(false);
  const indexOf = (id: string) => (layout === "list" ? list.indexOf(id) : allRows().findIndex((row) => row.id === id));
  const { cursorId, selected, move, toggle, clear, deselect } = useSelection({
    rows: allRows,
    indexOf,
    initialCursor: search.selected,
    onCursor: (id) => {
      // The address is written with a delay. It must not take back that the page is left.
      if (!isLeaving.current) {
        go({ selected: id }, true);
      }
    },
  });
  const cursorRow =
    cursorId === null ? undefined : shown.map((pages) => pages.rowOf(cursorId)).find((row) => row !== undefined);
  const canOperate = me?.permissions.includes("operate") ?? false;
  const selectedRows = [...selected.values()];
  const bulk = useBulk({
    targets: selectedRows.length > 0 ? selectedRows : cursorRow === undefined ? [] : [cursorRow],
    shown,
    canOperate,
    onDone: deselect,
  });
  const isFocusFree = useFreeFocus();
  const hasFilters = isNarrowed(filters) || filters.state !== undefined;
  useActions({
    "sessions.next": () => {
      move(1);
    },
    "sessions.previous": () => {
      move(-1);
    },
    "sessions.toggle-layout": toggleLayout,
    "sessions.pinned-only": () => {
      filter({ pinned: filters.pinned === true ? undefined : true });
    },
    "sessions.stuck-only": () => {
      filter({ stuck: filters.stuck === true ? undefined : true });
    },
    "sessions.reverse-order": reverseOrder,
    ...(hasFilters ? { "sessions.clear-filters": clearFilters } : {}),
    ...(selected.size > 0 ? { "sessions.clear-selection": clear } : {}),
    ...(selected.size === 2 ? { "sessions.compare": compareSelected } : {}),
    ...(cursorRow === undefined
      ? {}
      : {
          "sessions.select": () => {
            toggle(indexOf(cursorRow.id));
          },
          "sessions.select-range": () => {
            toggle(indexOf(cursorRow.id), true);
          },
        }),
    ...(cursorRow === undefined || !isFocusFree
      ? {}
      : {
          "sessions.open": () => void navigate({ to: "/sessions/$sessionId", params: { sessionId: cursorRow.id } }),
        }),
  });
  function toggleLayout(): void {
    go({ layout: layout === "list" ? "board" : undefined });
  }
  function compareSelected(): void {
    // The older one is on the left: of two attempts, the first.
    const ids = selectedRows
      .toSorted((one, other) => one.createdAt.localeCompare(other.createdAt))
      .map((row) => row.id);
    isLeaving.current = true;
    void navigate({ to: "/compare", search: { sessions: ids.join(",") } });
  }
  function reverseOrder(): void {
    go({ order: filters.order === "asc" ? undefined : "asc" });
  }

  const owners = useMemo(() => findOwners(rows), [rows]);
  const isAsc = filters.order === "asc";
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Toolbar
        filters={filters}
        layout={layout}
        isPhone={isPhone}
        counts={counts.data}
        owners={owners}
        onChange={filter}
        onLayout={toggleLayout}
      />
      <FilterChips
        filters={filters}
        owners={owners}
        parentTitle={parent.data?.title ?? undefined}
        onChange={filter}
        onClear={clearFilters}
      />
      {layout === "board" ? (
        <Board
          columns={columns}
          counts={counts.data?.states ?? {}}
          cursorId={cursorId}
          selected={selected}
          isPhone={isPhone}
          onSelect={(row) => {
            toggle(indexOf(row.id));
          }}
          onMove={move}
        />
      ) : (
        <SessionList
          key={key}
          pages={list}
          label="Sessions"
          total={filters.state === undefined ? counts.data?.total : counts.data?.states[filters.state]}
          cursorId={cursorId}
          selected={selected}
          isPhone={isPhone}
          onSelect={toggle}
          onMove={move}
          header={
            <div
              className={`h-8 shrink-0 items-center border-b pr-4 pl-[18px] text-xs text-muted max-md:hidden ${COLUMNS}`}
            >
              <span />
              <span>State</span>
              <span>Session</span>
              <span>Activity</span>
              <span>Project</span>
              <span className="max-xl:hidden">Agent</span>
              <span className="text-right max-xl:hidden">Tokens</span>
              <span className="text-right">Cost</span>
              <button
                type="button"
                className="flex min-h-6 items-center justify-end gap-0.5 hover:text-text"
                aria-label={
                  isAsc ? "Age: oldest first. Show the newest first" : "Age: newest first. Show the oldest first"
                }
                onClick={reverseOrder}
              >
                Age
                {isAsc ? <ArrowUp aria-hidden className="size-3" /> : <ArrowDown aria-hidden className="size-3" />}
              </button>
            </div>
          }
          empty={<NoSessions isFiltered={hasFilters} canOperate={canOperate} onClear={clearFilters} />}
        />
      )}
      <BulkBar
        rows={selectedRows}
        run={bulk.run}
        canOperate={canOperate}
        onRun={(kind) => {
          bulk.start(kind);
        }}
        onCompare={compareSelected}
        onClear={clear}
      />
      <DeleteDialog rows={bulk.toDelete} onCancel={bulk.cancelDelete} onConfirm={bulk.confirmDelete} />
      <FailuresDialog
        run={bulk.run}
        onClose={bulk.close}
        onRetry={(run) => {
          bulk.close();
          bulk.start(
            run.kind,
            run.failures.map(({ row }) => row),
          );
        }}
      />
    </div>
  );
}

const MOST_LOOKED_AT = 500;

function findOwners(rows: readonly { ownerId: string | null; ownerName: string | null }[]) {
  const found = new Map<string, string>();
  for (const { ownerId, ownerName } of rows.slice(0, MOST_LOOKED_AT)) {
    if (ownerId !== null && ownerName !== null) {
      found.set(ownerId, ownerName);
    }
  }
  return [...found].map(([id, name]) => ({ id, name }));
}
