// Reads and changes sessions.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, request, required, type RequestOptions } from "../client";
import type { Listing, SessionCounts } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import type { Session, SessionState } from "../session-state";

export type ListedSession = components["schemas"]["ListedSession"];

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
  order?: "asc" | "desc" | undefined;
}

const PAGE_SIZE = 100;

/** The parameters of `/v1/sessions` and `/v1/sessions/counts`. */
function toQuery({ state, ...filters }: SessionFilters): NonNullable<RequestOptions["query"]> {
  return { ...filters, ...(state === undefined ? {} : { "state[]": state }) };
}

export function listSessions(
  filters: SessionFilters,
  page: string | null,
  signal?: AbortSignal,
): Promise<Listing<ListedSession>> {
  return request("GET", "/v1/sessions", {
    query: { limit: PAGE_SIZE, ...toQuery(filters), page },
    ...(signal === undefined ? {} : { signal }),
  });
}

export function sessionsQuery(filters: SessionFilters = {}) {
  return infiniteQueryOptions({
    queryKey: [...keys.sessions, "list", filters],
    queryFn: ({ pageParam, signal }) => listSessions(filters, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

/** Not below `keys.sessions`: the page of the sessions reads the counts again, at most once per second. */
export function sessionCountsQuery({ order: _order, ...filters }: SessionFilters = {}) {
  return queryOptions({
    queryKey: [...keys.sessionCounts, filters],
    queryFn: ({ signal }) => request<SessionCounts>("GET", "/v1/sessions/counts", { query: toQuery(filters), signal }),
  });
}

/** The sessions that the caller pinned, for the sidebar. */
export const pinnedSessionsQuery = queryOptions({
  queryKey: keys.pinnedSessions,
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

export type SessionCreate = components["schemas"]["SessionCreate"];

export function createSession(body: SessionCreate): Promise<Session> {
  return request("POST", "/v1/sessions", { body });
}

const path = (id: string, action = ""): string => `/v1/sessions/${encodeURIComponent(id)}${action}`;

export const pinSession = (id: string): Promise<unknown> => request("PUT", path(id, "/pin"));
export const unpinSession = (id: string): Promise<unknown> => request("DELETE", path(id, "/pin"));
export const pauseSession = (id: string): Promise<unknown> => request("POST", path(id, "/pause"));
export const playSession = (id: string): Promise<unknown> => request("POST", path(id, "/play"));
export const archiveSession = (id: string): Promise<unknown> => request("POST", path(id, "/archive"));
export const deleteSession = (id: string): Promise<unknown> => request("DELETE", path(id));
export const interruptSession = (id: string): Promise<unknown> =>
  request("POST", path(id, "/events"), { body: { events: [{ type: "user.interrupt" }] } });
