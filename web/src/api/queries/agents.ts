// Reads and changes agents and their versions.
import { queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import { listingQuery } from "./listing";
import type { Schedule } from "./schedules";

export type Agent = components["schemas"]["Agent"];

const MAX_MODELS = 1000;
const MAX_SCHEDULES = 100;
const path = (id: string, action = ""): string => `/v1/agents/${encodeURIComponent(id)}${action}`;

export function agentListQuery(withArchived: boolean) {
  return listingQuery<Agent>(keys.agents, "/v1/agents", withArchived ? { include_archived: true } : {});
}

/** `version`: null for the newest one. */
export function agentQuery(id: string, version: number | null = null) {
  return queryOptions({
    queryKey: [...keys.agents, "one", id, version],
    queryFn: ({ signal }) => request<Agent>("GET", path(id), { query: { version }, signal }),
  });
}

export const agentVersionListQuery = (id: string) => listingQuery<Agent>(keys.agents, path(id, "/versions"));

/** All models that the operator's connections list. */
export const allModelsQuery = queryOptions({
  queryKey: ["models", "all"],
  queryFn: ({ signal }) =>
    request<{ data: { id: string }[] }>("GET", "/v1/models", { query: { limit: MAX_MODELS }, signal }),
});

/** The schedules that start sessions of an agent. */
export function agentSchedulesQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.deployments, "of-agent", id],
    queryFn: ({ signal }) =>
      request<Listing<Schedule>>("GET", "/v1/deployments", {
        query: { agent_id: id, limit: MAX_SCHEDULES },
        signal,
      }),
  });
}

/** `id`: null creates an agent. */
export function saveAgent(id: string | null, fields: Record<string, unknown>): Promise<Agent> {
  return request("POST", id === null ? "/v1/agents" : path(id), { body: fields });
}

export const archiveAgent = (id: string): Promise<Agent> => request("POST", path(id, "/archive"));
