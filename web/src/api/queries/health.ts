// Reads whether work can run: workers, task queues, versions, and the sessions that do not move. They are read again
// every few seconds, because most of it is no part of the feed.
import { queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import type { SessionCounts } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import { listSessions, type ListedSession } from "./sessions";

export type Worker = components["schemas"]["Worker"];
export type TaskQueue = components["schemas"]["TaskQueue"];
export type Versions = components["schemas"]["Versions"];

const REFRESH_MS = 5_000;
const VERSIONS_REFRESH_MS = 15_000;

/** What is shown is the present: an old response is shown only until the next one. */
const present = { refetchInterval: REFRESH_MS, staleTime: 0, retry: 1 } as const;

export const workersQuery = queryOptions({
  ...present,
  queryKey: [...keys.health, "workers"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/workers", { signal })).data,
});

export const queuesQuery = queryOptions({
  ...present,
  queryKey: [...keys.health, "queues"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/queues", { signal })).data,
});

/** How many running workers offer each backend, which every member may read. */
export const offeredBackendsQuery = queryOptions({
  ...present,
  queryKey: [...keys.health, "backends"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/backends", { signal })).data,
});

export const versionsQuery = queryOptions({
  ...present,
  refetchInterval: VERSIONS_REFRESH_MS,
  queryKey: [...keys.health, "versions"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/versions", { signal })),
});

export interface StuckSessions {
  /** The newest ones. */
  sessions: ListedSession[];
  total: number;
}

export const stuckSessionsQuery = queryOptions({
  ...present,
  queryKey: [...keys.health, "stuck"],
  queryFn: async ({ signal }): Promise<StuckSessions> => {
    const found = await listSessions({ stuck: true }, null, signal);
    if (found.next_page === null) {
      return { sessions: found.data, total: found.data.length };
    }
    const counts = await request<SessionCounts>("GET", "/v1/sessions/counts", { query: { stuck: true }, signal });
    return { sessions: found.data, total: counts.total };
  },
});
