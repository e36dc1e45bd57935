// Reads and changes webhook endpoints and their deliveries.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { request } from "../client";
import type { Listing } from "../contract";
import { keys } from "../keys";
import type { components } from "../schema";
import { listingQuery } from "./listing";

export type WebhookEndpoint = components["schemas"]["WebhookEndpointResponse"];
export type NewWebhookEndpoint = components["schemas"]["NewWebhookEndpointResponse"];
export type WebhookDelivery = components["schemas"]["WebhookDeliveryResponse"];
export type DeliveryStatus = WebhookDelivery["status"];

/** Webhooks are not in the feed: deliveries that are pending are read again until they are sent. */
const PENDING_MS = 2_000;
const SETTLED_MS = 30_000;
/** How often the page of an endpoint reads whether its attempts fail. */
export const ENDPOINT_MS = 5_000;
const path = (id: string, action = ""): string => `/v1/webhook_endpoints/${encodeURIComponent(id)}${action}`;

function nextRead(deliveries: readonly WebhookDelivery[]): number {
  return deliveries.some((one) => one.status === "pending") ? PENDING_MS : SETTLED_MS;
}

export const endpointListQuery = infiniteQueryOptions({
  ...listingQuery<WebhookEndpoint>(keys.webhooks, "/v1/webhook_endpoints"),
  refetchInterval: SETTLED_MS,
});

export function endpointQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.webhooks, "one", id],
    queryFn: ({ signal }) => request<WebhookEndpoint>("GET", path(id), { signal }),
  });
}

export function deliveryListQuery(id: string, status: DeliveryStatus | undefined) {
  return infiniteQueryOptions({
    ...listingQuery<WebhookDelivery>(keys.webhooks, path(id, "/deliveries"), { status }),
    refetchInterval: ({ state }) => nextRead(state.data?.pages.flatMap((page) => page.data) ?? []),
  });
}

/** The newest delivery of an endpoint. */
export function lastDeliveryQuery(id: string) {
  return queryOptions({
    queryKey: [...keys.webhooks, "last-delivery", id],
    queryFn: async ({ signal }) => {
      const found = await request<Listing<WebhookDelivery>>("GET", path(id, "/deliveries"), {
        query: { limit: 1 },
        signal,
      });
      return found.data[0] ?? null;
    },
    refetchInterval: ({ state: { data } }) => nextRead(data === undefined || data === null ? [] : [data]),
  });
}

/** The response has the secret, which cannot be read again. */
export function createEndpoint(fields: Record<string, unknown>): Promise<NewWebhookEndpoint> {
  return request("POST", "/v1/webhook_endpoints", { body: fields });
}

export function updateEndpoint(id: string, fields: Record<string, unknown>): Promise<WebhookEndpoint> {
  return request("POST", path(id), { body: fields });
}

/** The response has the new secret. */
export function rotateSecret(id: string, overlapSeconds: number): Promise<NewWebhookEndpoint> {
  return request("POST", path(id, "/rotate_secret"), { body: { overlap_seconds: overlapSeconds } });
}

export const testEndpoint = (id: string): Promise<WebhookDelivery> => request("POST", path(id, "/test"));
export const deleteEndpoint = (id: string): Promise<unknown> => request("DELETE", path(id));
export const replayDelivery = (id: string, deliveryId: string): Promise<WebhookDelivery> =>
  request("POST", path(id, `/deliveries/${encodeURIComponent(deliveryId)}/replay`));
