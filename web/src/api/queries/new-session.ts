// Reads what a new session can be made of, and creates it.
import { queryOptions } from "@tanstack/react-query";

import { api, apiFetch, readError, request, required } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import type { SessionCreate } from "./sessions";

export type Agent = components["schemas"]["Agent"];
export type Project = components["schemas"]["Project"];
export type Environment = components["schemas"]["Environment"];
export type Backend = components["schemas"]["Backend"];
export type Template = components["schemas"]["SessionTemplateResponse"];
export type UploadedFile = components["schemas"]["File"];

const LIMIT = 100;

export const projectsQuery = queryOptions({
  queryKey: keys.projects,
  queryFn: async ({ signal }) =>
    required(await api.GET("/v1/projects", { params: { query: { limit: LIMIT } }, signal })),
});

export const agentsQuery = queryOptions({
  queryKey: keys.agents,
  queryFn: async ({ signal }) => required(await api.GET("/v1/agents", { params: { query: { limit: LIMIT } }, signal })),
});

export function agentVersionsQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.agents, "versions", id],
    queryFn: ({ signal }) =>
      request<Listing<Agent>>("GET", `/v1/agents/${encodeURIComponent(id)}/versions`, {
        query: { limit: LIMIT },
        signal,
      }),
  });
}

export const environmentsQuery = queryOptions({
  queryKey: keys.environments,
  queryFn: async ({ signal }) =>
    required(await api.GET("/v1/environments", { params: { query: { limit: LIMIT } }, signal })),
});

export const backendsQuery = queryOptions({
  queryKey: ["backends"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/backends", { signal })),
});

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => request<Listing<{ id: string; display_name: string }>>("GET", "/v1/models", { signal }),
});

export const templatesQuery = queryOptions({
  queryKey: keys.templates,
  queryFn: ({ signal }) =>
    request<Listing<Template>>("GET", "/v1/session_templates", { query: { limit: LIMIT }, signal }),
});

export function createTemplate(name: string, session: SessionCreate): Promise<Template> {
  return request("POST", "/v1/session_templates", { body: { name, session } });
}

export function archiveTemplate(id: string): Promise<Template> {
  return request("POST", `/v1/session_templates/${encodeURIComponent(id)}/archive`);
}

export function createAgent(name: string, model: string): Promise<Agent> {
  return request("POST", "/v1/agents", {
    body: { name, model, tools: [{ type: "agent_toolset_20260401", ask_user: true }] },
  });
}

export function createEnvironment(name: string): Promise<Environment> {
  return request("POST", "/v1/environments", { body: { name, config: { type: "cloud" } } });
}

export function addSteps(sessionId: string, steps: readonly unknown[]): Promise<unknown> {
  return request("POST", `/v1/sessions/${encodeURIComponent(sessionId)}/steps`, { body: { steps } });
}

/** Uploads a file that only the caller can see; a session that gets it has its own copy. */
export async function uploadFile(file: File, signal: AbortSignal): Promise<UploadedFile> {
  const body = new FormData();
  body.set("file", file);
  body.set("visibility", "private");
  const response = await apiFetch(new Request(new URL("/v1/files", location.origin), { method: "POST", body, signal }));
  if (!response.ok) {
    throw await readError(response);
  }
  return (await response.json()) as UploadedFile;
}
