// Keeps the lists of sessions and their counts up to date while the page is open.
import type { QueryClient } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { FEED_LIVE, FEED_RESET, onFeedChange } from "@/api/feed";
import { keys } from "@/api/keys";
import { listSessions, sessionQuery, type SessionFilters } from "@/api/queries/sessions";

import { RowPages } from "./row-pages";
import { positionOf, toRow } from "./rows";

const BATCH_MS = 100;
const COUNTS_MS = 1_000;
/** What a running session does is not in the feed. */
const RUNNING_MS = 3_000;
/** More new sessions than this at once: the first page is read again instead of asking for each. */
const MOST_LOOKUPS = 20;
const MOST_LISTS = 24;

const lists = new Map<string, RowPages>();

/** The list with these filters. It is kept, so that a return to it shows it at once, where it was. */
export function rowPagesOf(filters: SessionFilters): RowPages {
  const key = JSON.stringify(Object.entries(filters).sort(([one], [other]) => one.localeCompare(other)));
  const pages = lists.get(key) ?? new RowPages(filters, listSessions);
  lists.delete(key);
  lists.set(key, pages);
  for (const old of [...lists.keys()].slice(0, Math.max(0, lists.size - MOST_LISTS))) {
    lists.delete(old);
  }
  return pages;
}

/** Call it once, with the lists that are on the screen, in an array that stays the same as long as they do. */
export function useLiveRows(shown: readonly RowPages[], ownId: string | undefined): void {
  const queries = useQueryClient();
  useEffect(() => follow(queries, shown, ownId), [queries, shown, ownId]);
}

function follow(queries: QueryClient, shown: readonly RowPages[], ownId: string | undefined): () => void {
  const changed = new Set<string>();
  const deleted = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let countsTimer: ReturnType<typeof setTimeout> | undefined;

  function readCounts(): void {
    countsTimer ??= setTimeout(() => {
      countsTimer = undefined;
      void queries.invalidateQueries({ queryKey: keys.sessionCounts });
    }, COUNTS_MS);
  }

  async function flush(): Promise<void> {
    timer = undefined;
    const ids = [...changed];
    changed.clear();
    readCounts();
    const unknown = new Map<string, RowPages[]>();
    for (const pages of shown) {
      for (const id of pages.markStale(ids).filter((one) => !deleted.has(one))) {
        unknown.set(id, [...(unknown.get(id) ?? []), pages]);
      }
    }
    if (unknown.size > MOST_LOOKUPS) {
      for (const pages of shown) {
        pages.markAllStale();
      }
      return;
    }
    await Promise.all([...unknown].map(([id, missing]) => place(queries, id, missing)));
  }

  function readFailed(): void {
    for (const pages of shown.filter((one) => one.getSnapshot().error !== null)) {
      void pages.loadMore();
    }
  }

  for (const pages of shown) {
    pages.markAllStale();
  }
  readFailed();
  readCounts();
  const stopFollowing = onFeedChange((change) => {
    if (change.type === FEED_RESET) {
      for (const pages of shown) {
        pages.markAllStale();
      }
      readCounts();
      return;
    }
    if (change.type === FEED_LIVE) {
      readFailed();
      return;
    }
    if (change.type === "session_pin.changed" && change.member_id !== ownId) {
      return;
    }
    const id = change.session_id ?? change.pinned_session_id;
    if (id !== undefined) {
      if (change.type === "session.deleted") {
        deleted.add(id);
      }
      changed.add(id);
      timer ??= setTimeout(() => void flush(), BATCH_MS);
    }
  });
  const running = setInterval(() => {
    if (document.visibilityState === "visible") {
      for (const pages of shown) {
        pages.markStale(pages.visibleRows().flatMap((row) => (row.state === "running" ? [row.id] : [])));
      }
    }
  }, RUNNING_MS);
  return () => {
    stopFollowing();
    clearInterval(running);
    clearTimeout(timer);
    clearTimeout(countsTimer);
  };
}

/** Shows a session in the lists where it belongs now. */
async function place(queries: QueryClient, id: string, missing: readonly RowPages[]): Promise<void> {
  try {
    const session = await queries.query({ ...sessionQuery(id), staleTime: 0 });
    const row = toRow(session);
    for (const pages of missing) {
      if (pages.filters.state === undefined || pages.filters.state === row.state) {
        pages.markPlaceStale(positionOf(session.created_at, id));
      }
    }
  } catch {
    // It was deleted, or the caller cannot see it.
  }
}
