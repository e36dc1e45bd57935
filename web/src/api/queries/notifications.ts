// The caller's notifications: whether and when, and in which browsers.
import { queryOptions } from "@tanstack/react-query";

import { api, request, required } from "../client";
import { keys } from "../keys";
import type { components } from "../schema";

export type NotificationSettings = components["schemas"]["NotificationSettingsResponse"];
export type QuietHours = NonNullable<NotificationSettings["quiet_hours"]>;
export type PushSubscriptionEntry = components["schemas"]["PushSubscriptionResponse"];

export const notificationSettingsQuery = queryOptions({
  queryKey: [...keys.notifications, "settings"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/notification_settings", { signal })),
});

export const pushSubscriptionsQuery = queryOptions({
  queryKey: [...keys.notifications, "browsers"],
  queryFn: async ({ signal }) => required(await api.GET("/v1/push_subscriptions", { signal })).data,
});

export function updateNotificationSettings(fields: {
  enabled?: boolean;
  quiet_hours?: QuietHours | null;
}): Promise<NotificationSettings> {
  return request("POST", "/v1/notification_settings", { body: fields });
}

/** Subscribes a browser, or renews its subscription. */
export function savePushSubscription(subscription: PushSubscriptionJSON): Promise<PushSubscriptionEntry> {
  const { endpoint, keys: browserKeys } = subscription;
  return request("POST", "/v1/push_subscriptions", { body: { endpoint, keys: browserKeys } });
}

export function removePushSubscription(id: string): Promise<unknown> {
  return request("DELETE", `/v1/push_subscriptions/${encodeURIComponent(id)}`);
}

export function testPushSubscription(id: string): Promise<unknown> {
  return request("POST", `/v1/push_subscriptions/${encodeURIComponent(id)}/test`);
}
