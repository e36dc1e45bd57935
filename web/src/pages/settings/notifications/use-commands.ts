// What a person can do with the own notifications.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useAction } from "@/actions/use-actions";
import {
  type NotificationSettings,
  notificationSettingsQuery,
  type PushSubscriptionEntry,
  pushSubscriptionsQuery,
  removePushSubscription,
  testPushSubscription,
  updateNotificationSettings,
} from "@/api/queries/notifications";
import { showToast } from "@/design/components/toast";

import { findObstacle, type Obstacle } from "./browser";
import { findSubscription, readAbilities, turnOff, turnOn } from "./push";

export interface NotificationCommands {
  /** Why this browser cannot show notifications. */
  obstacle: Obstacle | null;
  /** The subscription of this browser. Null: it has none that the server knows. */
  current: PushSubscriptionEntry | null;
  isBusy: boolean;
  toggleHere: () => void;
  toggleAll: () => void;
  test: (browser: PushSubscriptionEntry) => void;
  remove: (browser: PushSubscriptionEntry) => void;
  adoptSettings: (settings: NotificationSettings) => void;
}

export function useNotificationCommands(
  settings: NotificationSettings | undefined,
  browsers: readonly PushSubscriptionEntry[] | undefined,
): NotificationCommands {
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const obstacle = findObstacle(readAbilities());
  const endpoint = useQuery({
    queryKey: [...pushSubscriptionsQuery.queryKey, "here"],
    queryFn: async () => (await findSubscription())?.endpoint ?? null,
    staleTime: 0,
  });
  const current = browsers?.find((one) => one.endpoint === endpoint.data) ?? null;

  async function perform(work: () => Promise<void>, failure: string): Promise<void> {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      showToast({ title: failure, description: error instanceof Error ? error.message : "", tone: "failed" });
    } finally {
      await queries.invalidateQueries({ queryKey: pushSubscriptionsQuery.queryKey });
      setBusy(false);
    }
  }
  function adoptSettings(changed: NotificationSettings): void {
    queries.setQueryData(notificationSettingsQuery.queryKey, changed);
  }

  const commands: NotificationCommands = {
    obstacle,
    current,
    isBusy: isBusy || endpoint.isPending,
    toggleHere: () => {
      if (settings === undefined || obstacle !== null) {
        return;
      }
      void perform(
        async () => {
          if (current !== null) {
            await turnOff(current.id);
          } else if (!(await turnOn(settings.public_key))) {
            showToast({
              title: "Notifications stay off",
              description: "The browser did not get your permission. Turn them on again to be asked once more.",
              tone: "failed",
            });
          }
        },
        current === null ? "Notifications were not turned on" : "Notifications were not turned off",
      );
    },
    toggleAll: () => {
      if (settings === undefined) {
        return;
      }
      void perform(async () => {
        adoptSettings(await updateNotificationSettings({ enabled: !settings.enabled }));
      }, "Your notifications were not changed");
    },
    test: (browser) => {
      void perform(async () => {
        await testPushSubscription(browser.id);
        showToast({ title: "Test sent", description: "It appears within some seconds, also in quiet hours." });
      }, "The test was not sent");
    },
    remove: (browser) => {
      void perform(
        () =>
          browser.id === current?.id ? turnOff(browser.id) : removePushSubscription(browser.id).then(() => undefined),
        "The browser was not removed",
      );
    },
    adoptSettings,
  };
  useAction("settings.notify-here", commands.toggleHere, { isEnabled: obstacle === null && !commands.isBusy });
  useAction("settings.pause-notifications", commands.toggleAll, { isEnabled: settings !== undefined });
  useAction(
    "settings.test-notification",
    () => {
      if (current !== null) {
        commands.test(current);
      }
    },
    { isEnabled: current !== null },
  );
  return commands;
}
