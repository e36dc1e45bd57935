// Reads and changes API keys, members, teams and limits.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";

type Schemas = components["schemas"];

export type ApiKey = Schemas["ApiKeyResponse"];
/** With its secret, which cannot be read again. */
export type NewApiKey = Schemas["NewApiKeyResponse"];
export type Member = Schemas["MemberResponse"];
export type Team = Schemas["TeamResponse"];

const PAGE_SIZE = 100;

function entriesQuery<T>(key: readonly string[], path: string, isComplete: boolean) {
  return infiniteQueryOptions({
    queryKey: [...key, "list", isComplete],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<T>>("GET", path, {
        query: { limit: PAGE_SIZE, include_archived: isComplete ? true : undefined, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

async function readAll<T>(path: string, signal: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  let page: string | null = null;
  do {
    const listed: Listing<T> = await request<Listing<T>>("GET", path, { query: { limit: PAGE_SIZE, page }, signal });
    found.push(...listed.data);
    page = listed.next_page;
  } while (page !== null);
  return found;
}

/** The keys that are not revoked, or all. */
export const apiKeysQuery = (isComplete: boolean) => entriesQuery<ApiKey>(keys.apiKeys, "/v1/api_keys", isComplete);

/** All members that are not disabled, for choices. */
export const allMembersQuery = queryOptions({
  queryKey: [...keys.members, "all"],
  queryFn: ({ signal }) => readAll<Member>("/v1/members", signal),
});

const path = (list: string, id: string, action = ""): string => `/v1/${list}/${encodeURIComponent(id)}${action}`;

export interface ApiKeyFields {
  name: string;
  member_id: string | null;
  roles: readonly string[];
  expires_at: string | null;
  project_ids: readonly string[] | null;
}

export function createApiKey(fields: ApiKeyFields): Promise<NewApiKey> {
  return request("POST", "/v1/api_keys", { body: fields });
}

export const revokeApiKey = (id: string): Promise<ApiKey> => request("POST", path("api_keys", id, "/revoke"));
export const rotateApiKey = (id: string): Promise<NewApiKey> => request("POST", path("api_keys", id, "/rotate"));
