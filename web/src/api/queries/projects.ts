// Reads and changes projects.
import { queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import { keys } from "../keys";
import type { components } from "../schema";
import { listingQuery } from "./listing";

export type Project = components["schemas"]["Project"];

const path = (id: string, action = ""): string => `/v1/projects/${encodeURIComponent(id)}${action}`;

export function projectListQuery(withArchived: boolean) {
  return listingQuery<Project>(keys.projects, "/v1/projects", withArchived ? { include_archived: true } : {});
}

export function projectQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.projects, "one", id],
    queryFn: ({ signal }) => request<Project>("GET", path(id), { signal }),
  });
}

/** `id`: null creates a project. */
export function saveProject(id: string | null, fields: Record<string, unknown>): Promise<Project> {
  return request("POST", id === null ? "/v1/projects" : path(id), { body: fields });
}

export const archiveProject = (id: string): Promise<Project> => request("POST", path(id, "/archive"));
