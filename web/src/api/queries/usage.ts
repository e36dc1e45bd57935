// Reads what turns used: tokens, cost and numbers of turns, in total or by group.
import { queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";

export type UsageLine = components["schemas"]["UsageLineAnswer"];
export type UsageListing = components["schemas"]["UsageListing"];
export type UsageGrouping = "day" | "model" | "agent" | "project" | "member";

export interface UsageQuery {
  /** Times. The end is not included. */
  from: string;
  to: string;
  group_by?: readonly UsageGrouping[];
  /** Only these values of a group. */
  only?: { group: Exclude<UsageGrouping, "day">; values: readonly string[] } | undefined;
}

/** The most lines that the server sends. */
export const MAX_LINES = 1000;
const REFRESH_MS = 30_000;

function toQuery({ from, to, group_by = [], only }: UsageQuery) {
  return { from, to, group_by, limit: MAX_LINES, ...(only === undefined ? {} : { [only.group]: only.values }) };
}

/** Turns are no part of the feed, so a period that includes the present is read again from time to time. */
function refreshOf(to: string): number | false {
  return Date.parse(to) > Date.now() ? REFRESH_MS : false;
}

export function usageQuery(query: UsageQuery) {
  return queryOptions({
    queryKey: [...keys.usage, query],
    queryFn: ({ signal }) => request<UsageListing>("GET", "/v1/usage", { query: toQuery(query), signal }),
    refetchInterval: () => refreshOf(query.to),
  });
}

/** The same report for several periods, one after the other. */
export function usageInPartsQuery(parts: readonly UsageQuery[]) {
  return queryOptions({
    queryKey: [...keys.usage, "parts", parts],
    queryFn: async ({ signal }) => {
      const lines: UsageLine[] = [];
      for (const part of parts) {
        const found = await request<UsageListing>("GET", "/v1/usage", { query: toQuery(part), signal });
        lines.push(...found.data);
      }
      return lines;
    },
    refetchInterval: () => refreshOf(parts.at(-1)?.to ?? ""),
  });
}

export interface SessionCount {
  count: number;
  /** There are more than the server lists. */
  hasMore: boolean;
}

/** The number of sessions with a turn in the period. */
export function usedSessionsQuery(period: { from: string; to: string }) {
  return queryOptions({
    queryKey: [...keys.usage, "sessions", period],
    queryFn: async ({ signal }): Promise<SessionCount> => {
      const found = await request<UsageListing>("GET", "/v1/usage", {
        query: { ...period, group_by: ["session"], limit: MAX_LINES },
        signal,
      });
      return { count: found.data.length, hasMore: found.has_more };
    },
  });
}

const PAGE_SIZE = 100;

/** The names of all agents or projects by their id, also of archived ones. */
export function namesQuery(kind: "agents" | "projects") {
  return queryOptions({
    queryKey: [...keys[kind], "names"],
    queryFn: async ({ signal }) => {
      const names: Record<string, string> = {};
      let page: string | null = null;
      do {
        const found: Listing<{ id: string; name: string }> = await request("GET", `/v1/${kind}`, {
          query: { limit: PAGE_SIZE, include_archived: true, page },
          signal,
        });
        for (const { id, name } of found.data) {
          names[id] = name;
        }
        page = found.next_page;
      } while (page !== null);
      return names;
    },
  });
}
