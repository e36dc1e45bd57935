// Reads and changes schedules, which the API calls deployments, and their runs.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";

export type Schedule = components["schemas"]["DeploymentResponse"];
export type ScheduleRun = components["schemas"]["DeploymentRunResponse"];
export type SchedulePreview = components["schemas"]["SchedulePreviewResponse"];
export type OverlapPolicy = Schedule["overlap_policy"];

export interface ScheduleFilters {
  status?: "active" | "paused" | undefined;
  include_archived?: true | undefined;
}

const PAGE_SIZE = 50;
const RUNS_PAGE_SIZE = 25;

export function schedulesQuery(filters: ScheduleFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.deployments, "list", filters],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<Schedule>>("GET", "/v1/deployments", {
        query: { limit: PAGE_SIZE, ...filters, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

export function scheduleQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.deployments, "one", id],
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/deployments/{deployment_id}", { params: { path: { deployment_id: id } }, signal })),
  });
}

export interface RunFilters {
  deployment_id: string;
  has_error?: true | undefined;
}

export function runsQuery(filters: RunFilters) {
  return infiniteQueryOptions({
    queryKey: [...keys.deployments, "runs", filters],
    queryFn: ({ pageParam, signal }) =>
      request<Listing<ScheduleRun>>("GET", "/v1/deployment_runs", {
        query: { limit: RUNS_PAGE_SIZE, ...filters, page: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_page,
  });
}

/** The newest run of a schedule, by its times or on request. */
export function lastRunQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.deployments, "last-run", id],
    queryFn: async ({ signal }) => {
      const found = await request<Listing<ScheduleRun>>("GET", "/v1/deployment_runs", {
        query: { deployment_id: id, limit: 1 },
        signal,
      });
      return found.data[0] ?? null;
    },
  });
}

/** The next times of an expression that no schedule has yet. An error says what is wrong with it. */
export function previewQuery(expression: string, timezone: string) {
  return queryOptions({
    queryKey: ["schedule-preview", expression, timezone],
    queryFn: async ({ signal }) =>
      required(await api.GET("/v1/deployments/upcoming_runs", { params: { query: { expression, timezone } }, signal })),
    retry: false,
    staleTime: 30_000,
  });
}

const path = (id: string, action = ""): string => `/v1/deployments/${encodeURIComponent(id)}${action}`;

export function createSchedule(fields: Record<string, unknown>): Promise<Schedule> {
  return request("POST", "/v1/deployments", { body: fields });
}

export function updateSchedule(id: string, fields: Record<string, unknown>): Promise<Schedule> {
  return request("POST", path(id), { body: fields });
}

export const pauseSchedule = (id: string): Promise<Schedule> => request("POST", path(id, "/pause"));
export const resumeSchedule = (id: string): Promise<Schedule> => request("POST", path(id, "/unpause"));
export const archiveSchedule = (id: string): Promise<Schedule> => request("POST", path(id, "/archive"));
export const runSchedule = (id: string): Promise<ScheduleRun> => request("POST", path(id, "/run"));
