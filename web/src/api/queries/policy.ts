// Reads and changes the organisation's policy, and explains calls.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";

export type Policy = components["schemas"]["OrganisationPolicy"];
export type Permissions = components["schemas"]["PermissionsAnswer"];
export type ApprovalTerms = Policy["approvals"];
export type Explanation = components["schemas"]["PolicyExplanation"];
export type AuditEntry = components["schemas"]["AuditEntry"];
export type Outcome = Explanation["outcome"];

export const policyQuery = queryOptions({
  queryKey: keys.policy,
  queryFn: async ({ signal }) => required(await api.GET("/v1/policies", { signal })),
  refetchOnMount: "always",
});

/** Who changed the policy last, and when. The policy itself has only an id. */
export const lastPolicyChangeQuery = queryOptions({
  queryKey: [...keys.audit, "last-policy-change"],
  queryFn: async ({ signal }) => {
    const found = await request<Listing<AuditEntry>>("GET", "/v1/audit", {
      query: { kind: "policy", limit: 1 },
      signal,
    });
    return found.data[0] ?? null;
  },
  refetchOnMount: "always",
});

export interface PolicyChange {
  permissions?: Permissions;
  approvals?: ApprovalTerms;
  /** The time of the policy that was read. If another one is stored, the server refuses the change. */
  expected_updated_at: string | null;
}

export function updatePolicy(change: PolicyChange): Promise<Policy> {
  return request("POST", "/v1/policies", { body: change });
}

export interface ExplainedCall {
  tool: string;
  input: Record<string, unknown>;
  agent_id?: string | undefined;
  project_id?: string | undefined;
  session_id?: string | undefined;
}

export function explainQuery(call: ExplainedCall) {
  return queryOptions({
    queryKey: [...keys.policy, "explain", call],
    queryFn: ({ signal }) => request<Explanation>("POST", "/v1/policies/explain", { body: call, signal }),
    retry: false,
    refetchOnMount: "always",
  });
}

export type ReplayPage = components["schemas"]["PolicyReplay"];
export type ChangedCall = components["schemas"]["ChangedCall"];

export interface ReplayRequest {
  permissions: Permissions;
  project_id?: string | undefined;
  since?: string | undefined;
}

/** Calls of one page. A page ends early after two seconds of CPU time. */
const REPLAYED_CALLS = 1000;

/** Evaluates rules of the organisation against past calls, newest first. */
export function replayQuery(wanted: ReplayRequest | null) {
  return infiniteQueryOptions({
    queryKey: [...keys.policy, "replay", wanted],
    queryFn: ({ pageParam, signal }) =>
      request<ReplayPage>("POST", "/v1/policies/replay", {
        body: { ...wanted, limit: REPLAYED_CALLS, ...(pageParam === null ? {} : { page: pageParam }) },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
    enabled: wanted !== null,
    retry: false,
    staleTime: "static",
  });
}

export interface AuditFilters {
  kind?: AuditEntry["kind"] | undefined;
  outcome?: string | undefined;
  member?: string | undefined;
  tool?: string | undefined;
  session_id?: string | undefined;
  "created_at[gte]"?: string | undefined;
  "created_at[lte]"?: string | undefined;
  order?: "asc" | "desc" | undefined;
}

const AUDIT_PAGE = 50;
const EXPORT_PAGE = 100;

function listEntries(
  filters: AuditFilters,
  { limit, page, signal }: { limit: number; page: string | null; signal: AbortSignal },
): Promise<Listing<AuditEntry>> {
  return request("GET", "/v1/audit", { query: { limit, ...filters, page }, signal });
}

export function auditQuery(filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.audit, "list", filters],
    queryFn: ({ pageParam, signal }) => listEntries(filters, { limit: AUDIT_PAGE, page: pageParam, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
    refetchOnMount: "always",
  });
}

/** All entries that match, the oldest first. */
export async function* readEntries(filters: AuditFilters, signal: AbortSignal): AsyncGenerator<AuditEntry[]> {
  let page: string | null = null;
  do {
    const found: Listing<AuditEntry> = await listEntries(
      { ...filters, order: "asc" },
      { limit: EXPORT_PAGE, page, signal },
    );
    yield found.data;
    page = found.next_page;
  } while (page !== null);
}

export type AuditVerification = components["schemas"]["AuditVerification"];

/** Recomputes every hash of the trail. `head`: one that was saved earlier, which must still be in the chain. */
export function verifyAudit(head: string | null): Promise<AuditVerification> {
  return request("GET", "/v1/audit/verify", { query: { head } });
}
