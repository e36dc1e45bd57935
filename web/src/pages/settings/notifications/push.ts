// Subscribes this browser at its push service, and tells the server.
import {
  notificationSettingsQuery,
  pushSubscriptionsQuery,
  removePushSubscription,
  savePushSubscription,
} from "@/api/queries/notifications";
import { queryClient } from "@/api/query-client";

import { type BrowserAbilities, decodeKey, findObstacle, isSameKey } from "./browser";

const SERVICE_WORKER = "/service-worker.js";

export function readAbilities(): BrowserAbilities {
  return {
    isSecureContext: window.isSecureContext,
    hasServiceWorker: "serviceWorker" in navigator,
    hasPush: "PushManager" in window,
    permission: "Notification" in window ? Notification.permission : null,
    userAgent: navigator.userAgent,
  };
}

/** The subscription of this browser at its push service, whether the server knows it or not. */
export async function findSubscription(): Promise<PushSubscription | null> {
  if (findObstacle(readAbilities()) !== null) {
    return null;
  }
  const registration = await navigator.serviceWorker.getRegistration(SERVICE_WORKER);
  return (await registration?.pushManager.getSubscription()) ?? null;
}

/** Asks for permission if needed. Returns false if the person refused it. */
export async function turnOn(publicKey: string): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") {
    return false;
  }
  await navigator.serviceWorker.register(SERVICE_WORKER);
  const { pushManager } = await navigator.serviceWorker.ready;
  const subscription = await subscribe(pushManager, decodeKey(publicKey));
  await savePushSubscription(subscription.toJSON());
  return true;
}

export async function turnOff(id: string | null): Promise<void> {
  if (id !== null) {
    await removePushSubscription(id);
  }
  await (await findSubscription())?.unsubscribe();
}

/**
 * Renews the subscription of this browser when the dashboard is opened: the browser may have signed in again, and the server
 * may have another key. A browser that was removed stays removed.
 */
export async function renewSubscription(): Promise<void> {
  const subscription = await findSubscription();
  if (subscription === null) {
    return;
  }
  const [settings, known] = await Promise.all([
    queryClient.query(notificationSettingsQuery),
    queryClient.query(pushSubscriptionsQuery),
  ]);
  const entry = known.find((one) => one.endpoint === subscription.endpoint);
  if (entry === undefined) {
    await subscription.unsubscribe();
    return;
  }
  const { pushManager } = await navigator.serviceWorker.ready;
  const renewed = await subscribe(pushManager, decodeKey(settings.public_key));
  if (renewed.endpoint !== entry.endpoint) {
    await removePushSubscription(entry.id);
  }
  await savePushSubscription(renewed.toJSON());
  await queryClient.invalidateQueries({ queryKey: pushSubscriptionsQuery.queryKey });
}

/** A subscription with another key of the server is replaced: the push service would refuse what the server sends. */
async function subscribe(manager: PushManager, key: Uint8Array<ArrayBuffer>): Promise<PushSubscription> {
  const current = await manager.getSubscription();
  if (current !== null) {
    if (isSameKey(current.options.applicationServerKey, key)) {
      return current;
    }
    await current.unsubscribe();
  }
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}
