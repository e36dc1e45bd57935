// Reads the child sessions and subagents of a session.
import { queryOptions } from "@tanstack/react-query";

import { api, request, required } from "@/api/client";
import type { Listing } from "@/api/contract";
import { keys } from "@/api/keys";
import type { Session } from "@/api/session-state";

const PAGE_SIZE = 100;
const MAX_PAGES = 10;

/** The sessions that a session started, the oldest first. */
export function childrenQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.sessions, "children", sessionId],
    queryFn: async ({ signal }) => {
      const found: Session[] = [];
      let page: string | null = null;
      for (let count = 0; count < MAX_PAGES; count += 1) {
        const listing: Listing<Session> = await request<Listing<Session>>("GET", "/v1/sessions", {
          query: { parent_id: sessionId, limit: PAGE_SIZE, order: "asc", include_archived: true, page },
          signal,
        });
        found.push(...listing.data);
        page = listing.next_page;
        if (page === null) {
          break;
        }
      }
      return found;
    },
  });
}

/** The subagents of a session. The session's own thread is not among them. */
export function subagentsQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "threads"],
    queryFn: async ({ signal }) => {
      const { data } = required(
        await api.GET("/v1/sessions/{session_id}/threads", {
          params: { path: { session_id: sessionId }, query: { limit: 100 } },
          signal,
        }),
      );
      return data.filter((thread) => thread.parent_thread_id !== null);
    },
  });
}

/** The tokens and the cost of the session and everything below it. */
export function totalUsageQuery(sessionId: string) {
  return queryOptions({
    queryKey: [...keys.session(sessionId), "usage"],
    queryFn: async ({ signal }) =>
      required(
        await api.GET("/v1/sessions/{session_id}/usage", { params: { path: { session_id: sessionId } }, signal }),
      ),
  });
}
