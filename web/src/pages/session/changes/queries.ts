// Reads what changed in a session: its turns, the summary of a diff, and comments on its lines.
import { queryOptions } from "@tanstack/react-query";

import { request } from "@/api/client";
import type { Listing } from "@/api/contract";
import type { components } from "@/api/schema";
import type { Turn } from "./ranges";

export type DiffSummary = components["schemas"]["Diff"];
export type TreeDiff = DiffSummary["trees"][number];
export type FileSummary = TreeDiff["files"][number];
export type Comment = components["schemas"]["SessionComment"];
export type DiffParameters = Readonly<Record<string, string | number>>;

const PAGE_SIZE = 100;
const MOST_PAGES = 20;

export const changesKeys = {
  turns: (sessionId: string) => ["session-changes", sessionId, "turns"],
  summaries: (sessionId: string) => ["session-changes", sessionId, "summary"],
  summary: (sessionId: string, parameters: DiffParameters) => ["session-changes", sessionId, "summary", parameters],
  comments: (sessionId: string) => ["session-changes", sessionId, "comments"],
} as const;

/** Reads all pages of a list. */
async function readAll<T>(path: string, signal: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let page: string | null = null;
  for (let number = 0; number < MOST_PAGES; number += 1) {
    const listing: Listing<T> = await request<Listing<T>>("GET", path, { query: { limit: PAGE_SIZE, page }, signal });
    found.push(...listing.data);
    page = listing.next_page;
    if (page === null) {
      break;
    }
  }
  return found;
}

/** All turns in the order in which they ran. */
export function turnsQuery(sessionId: string) {
  return queryOptions({
    queryKey: changesKeys.turns(sessionId),
    queryFn: async ({ signal }) =>
      (await readAll<Turn>(`/v1/sessions/${encodeURIComponent(sessionId)}/turns`, signal)).reverse(),
  });
}

export function summaryQuery(sessionId: string, parameters: DiffParameters | null, { isFinal = false } = {}) {
  return queryOptions({
    queryKey: changesKeys.summary(sessionId, parameters ?? {}),
    queryFn: ({ signal }) =>
      request<DiffSummary>("GET", `/v1/sessions/${encodeURIComponent(sessionId)}/diff`, {
        query: { ...parameters },
        signal,
      }),
    enabled: parameters !== null,
    staleTime: isFinal ? Number.POSITIVE_INFINITY : 0,
  });
}

export function commentsQuery(sessionId: string) {
  return queryOptions({
    queryKey: changesKeys.comments(sessionId),
    queryFn: ({ signal }) => readAll<Comment>(`/v1/sessions/${encodeURIComponent(sessionId)}/comments`, signal),
  });
}

export function patchUrl(sessionId: string, parameters: DiffParameters): string {
  const query = new URLSearchParams({ format: "patch" });
  for (const [name, value] of Object.entries(parameters)) {
    query.set(name, String(value));
  }
  return `/v1/sessions/${encodeURIComponent(sessionId)}/diff?${query.toString()}`;
}
