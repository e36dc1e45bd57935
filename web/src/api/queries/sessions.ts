// Reads sessions.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import type { Listing, SessionCounts } from "../contract";
import { keys } from "../keys";
import type { Session, SessionState } from "../session-state";

export interface SessionFilters {
  q?: string | undefined;
  state?: SessionState | undefined;
  project_id?: string | undefined;
  agent_id?: string | undefined;
  owner_id?: string | undefined;
  harness?: string | undefined;
  parent_id?: string | undefined;
  group_id?: string | undefined;
  pinned?: boolean | undefined;
  stuck?: boolean | undefined;
}

const PAGE_SIZE = 100;

export function sessionsQuery(filters: SessionFilters = {}) {
  return infiniteQueryOptions({
    queryKey: [...keys.sessions, "list", filters],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<Session>>("GET", "/v1/sessions", {
        query: { limit: PAGE_SIZE, ...filters, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

export function sessionCountsQuery(filters: SessionFilters = {}) {
  return queryOptions({
    queryKey: [...keys.sessions, "counts", filters],
    queryFn: ({ signal }) => request<SessionCounts>("GET", "/v1/sessions/counts", { query: { ...filters }, signal }),
  });
}

/** The sessions that the caller pinned, for the sidebar. */
export const pinnedSessionsQuery = queryOptions({
  queryKey: [...keys.sessions, "pinned"],
  queryFn: ({ signal }) =>
    request<Listing<Session>>("GET", "/v1/sessions", { query: { pinned: true, limit: 20 }, signal }),
  retry: false,
});

export function sessionQuery(id: string) {
  return queryOptions({
    queryKey: keys.session(id),
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/sessions/{session_id}", { params: { path: { session_id: id } }, signal })),
  });
}
