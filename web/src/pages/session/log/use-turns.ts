// The turns of a session: the newest ones are read again when something changes, the older ones once.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";

import { api, required } from "@/api/client";
import { keys } from "@/api/keys";

import { readTurns, type Turn } from "./turns";

const PAGE = 100;
const MAX_OLDER_PAGES = 50;

async function fetchTurns(sessionId: string, page: string | null, signal: AbortSignal) {
  return required(
    await api.GET("/v1/sessions/{session_id}/turns", {
      params: { path: { session_id: sessionId }, query: { limit: PAGE, ...(page === null ? {} : { page }) } },
      signal,
    }),
  );
}

export function useTurns(sessionId: string): readonly Turn[] {
  const newest = useQuery({
    queryKey: [...keys.session(sessionId), "turns"],
    queryFn: ({ signal }) => fetchTurns(sessionId, null, signal),
  });
  // Outside of the session's keys, so that a change does not read all pages again.
  const older = useInfiniteQuery({
    queryKey: ["older-turns", sessionId],
    queryFn: ({ pageParam, signal }) => fetchTurns(sessionId, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
    staleTime: Number.POSITIVE_INFINITY,
    enabled: newest.data !== undefined && newest.data.next_page !== null,
  });
  const pages = older.data?.pages;
  const { hasNextPage, isFetching, fetchNextPage, error } = older;
  useEffect(() => {
    if (hasNextPage && !isFetching && error === null && (pages?.length ?? 0) < MAX_OLDER_PAGES) {
      void fetchNextPage();
    }
  }, [hasNextPage, isFetching, fetchNextPage, error, pages]);
  return useMemo(() => {
    const isComplete =
      newest.data !== undefined && (newest.data.next_page === null || (pages !== undefined && !hasNextPage));
    // The newest page is last, so that its state of a turn replaces an older one.
    const records = [...(pages?.flatMap((page) => page.data) ?? []), ...(newest.data?.data ?? [])];
    return readTurns(records, isComplete);
  }, [newest.data, pages, hasNextPage]);
}
