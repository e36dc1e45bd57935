// The actions of the section Notifications. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const notificationActions = defineActions([
  { id: "settings.notify-here", title: "Turn notifications in this browser on or off", scope: "settings" },
  { id: "settings.test-notification", title: "Send a test notification to this browser", scope: "settings" },
  { id: "settings.pause-notifications", title: "Turn all my notifications on or off", scope: "settings" },
  { id: "settings.save-quiet-hours", title: "Save the quiet hours", scope: "settings" },
]);
