// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const healthActions = defineActions([
  { id: "health.next", title: "Next stuck session", scope: "health", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "health.previous",
    title: "Previous stuck session",
    scope: "health",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "health.open", title: "Open the stuck session", scope: "health", shortcut: "enter" },
  { id: "health.refresh", title: "Check again", scope: "health", shortcut: "r", keywords: ["refresh", "reload"] },
  { id: "health.list", title: "Show all stuck sessions", scope: "health", shortcut: "s", keywords: ["blocked"] },
  { id: "health.lost", title: "Show or hide lost workers", scope: "health", shortcut: "l" },
  { id: "health.copy-versions", title: "Copy the versions", scope: "health", shortcut: "c", keywords: ["report"] },
]);
