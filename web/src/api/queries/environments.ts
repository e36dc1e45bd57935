// Reads and changes environments.
import { queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import { keys } from "../keys";
import type { components } from "../schema";
import { listingQuery } from "./listing";

export type Environment = components["schemas"]["Environment"];

const path = (id: string): string => `/v1/environments/${encodeURIComponent(id)}`;

export function environmentListQuery(withArchived: boolean) {
  return listingQuery<Environment>(
    keys.environments,
    "/v1/environments",
    withArchived ? { include_archived: true } : {},
  );
}

export function environmentQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.environments, "one", id],
    queryFn: ({ signal }) => request<Environment>("GET", path(id), { signal }),
  });
}

/** `id`: null creates an environment. */
export function saveEnvironment(id: string | null, fields: Record<string, unknown>): Promise<Environment> {
  return request("POST", id === null ? "/v1/environments" : path(id), { body: fields });
}

export const deleteEnvironment = (id: string): Promise<unknown> => request("DELETE", path(id));
