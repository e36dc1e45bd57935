// Reads and changes API keys, members, teams and limits.
import { queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import { listingQuery } from "./listing";

type Schemas = components["schemas"];

export type ApiKey = Schemas["ApiKeyResponse"];
/** With its secret, which cannot be read again. */
export type NewApiKey = Schemas["NewApiKeyResponse"];
export type Member = Schemas["MemberResponse"];
export type Team = Schemas["TeamResponse"];
export type Limit = Schemas["LimitResponse"];

const PAGE_SIZE = 100;

const withArchived = (isComplete: boolean) => (isComplete ? { include_archived: true } : {});

async function readAll<T>(path: string, signal: AbortSignal, filter: Record<string, true> = {}): Promise<T[]> {
  const found: T[] = [];
  let page: string | null = null;
  do {
    const query: Record<string, string | number | boolean | null> = { limit: PAGE_SIZE, ...filter, page };
    const listed: Listing<T> = await request<Listing<T>>("GET", path, { query, signal });
    found.push(...listed.data);
    page = listed.next_page;
  } while (page !== null);
  return found;
}

/** The keys that are not revoked, or all. */
export const apiKeysQuery = (isComplete: boolean) =>
  listingQuery<ApiKey>(keys.apiKeys, "/v1/api_keys", withArchived(isComplete));

/** The members that are not disabled, or all. */
export const membersQuery = (isComplete: boolean) =>
  listingQuery<Member>(keys.members, "/v1/members", withArchived(isComplete));

export const teamsQuery = listingQuery<Team>(keys.teams, "/v1/teams");

export const allTeamsQuery = queryOptions({
  queryKey: [...keys.teams, "all"],
  queryFn: ({ signal }) => readAll<Team>("/v1/teams", signal),
});

/** All members, also disabled ones, for their names. */
export const everyMemberQuery = queryOptions({
  queryKey: [...keys.members, "every"],
  queryFn: ({ signal }) => readAll<Member>("/v1/members", signal, { include_archived: true }),
});

/** All members that are not disabled, for choices. */
export const allMembersQuery = queryOptions({
  ...everyMemberQuery,
  select: (members: Member[]) => members.filter((member) => member.disabled_at === null),
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

export interface MemberFields {
  name: string;
  kind: "person" | "service";
  roles: readonly string[];
}

export function createMember(fields: MemberFields): Promise<Member> {
  return request("POST", "/v1/members", { body: fields });
}

export interface MemberChange {
  roles?: readonly string[];
  disabled?: boolean;
  /** The member who continues the work of a disabled one. */
  successor_id?: string;
}

export function updateMember(id: string, fields: MemberChange): Promise<Member> {
  return request("POST", path("members", id), { body: fields });
}

export function createTeam(name: string, memberIds: readonly string[]): Promise<Team> {
  return request("POST", "/v1/teams", { body: { name, member_ids: memberIds } });
}

export function updateTeam(id: string, add: readonly string[], remove: readonly string[]): Promise<Team> {
  return request("POST", path("teams", id), { body: { add_member_ids: add, remove_member_ids: remove } });
}

export const limitsQuery = queryOptions({
  queryKey: [...keys.limits, "list"],
  queryFn: async ({ signal }) => (await request<Listing<Limit>>("GET", "/v1/limits", { signal })).data,
});

export interface LimitFields {
  name: Limit["name"];
  scope: Limit["scope"];
  member_id: string | null;
  /** Null removes the limit. */
  value: number | null;
}

export function setLimit(fields: LimitFields): Promise<Limit> {
  return request("POST", "/v1/limits", { body: fields });
}
