// Reads what needs a person, and changes it.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import type { InboxCounts, InboxItem, InboxKind, InboxView, Listing } from "../contract";
import { keys } from "../keys";

export interface InboxFilters {
  view: InboxView;
  kind?: InboxKind | undefined;
  project_id?: string | undefined;
}

const PAGE_SIZE = 100;

export function inboxQuery(filters: InboxFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.inbox, "list", filters],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<InboxItem>>("GET", "/v1/inbox", {
        query: { limit: PAGE_SIZE, ...filters, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

export function inboxItemQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.inbox, "item", id],
    queryFn: ({ signal }) => request<InboxItem>("GET", `/v1/inbox/${encodeURIComponent(id)}`, { signal }),
  });
}

export const inboxCountsQuery = queryOptions({
  queryKey: [...keys.inbox, "counts"],
  queryFn: ({ signal }) => request<InboxCounts>("GET", "/v1/inbox/counts", { signal }),
});

export function approvalsQuery(sessionId?: string) {
  return queryOptions({
    queryKey: [...keys.approvals, sessionId ?? null],
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/approvals", {
          params: { query: { limit: 100, ...(sessionId === undefined ? {} : { session_id: sessionId }) } },
          signal,
        }),
      ),
  });
}

export function questionsQuery(sessionId?: string) {
  return queryOptions({
    queryKey: [...keys.questions, sessionId ?? null],
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/questions", {
          params: { query: { limit: 100, ...(sessionId === undefined ? {} : { session_id: sessionId }) } },
          signal,
        }),
      ),
  });
}

export function updateInboxItem(
  id: string,
  change: { assignee_id?: string | null; snoozed_until?: string | null },
): Promise<InboxItem> {
  return request<InboxItem>("POST", `/v1/inbox/${encodeURIComponent(id)}`, { body: change });
}

export function dismissInboxItem(id: string): Promise<InboxItem> {
  return request<InboxItem>("POST", `/v1/inbox/${encodeURIComponent(id)}/dismiss`);
}
