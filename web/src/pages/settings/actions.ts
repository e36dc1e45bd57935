// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const settingsActions = defineActions([
  // The frame offers these on every page.
  { id: "settings.agents", title: "Settings: Agents", scope: "settings" },
  { id: "settings.environments", title: "Settings: Environments", scope: "settings" },
  { id: "settings.projects", title: "Settings: Projects", scope: "settings" },
  { id: "settings.webhooks", title: "Settings: Webhooks", scope: "settings" },
  {
    id: "settings.keys",
    title: "Settings: API keys",
    scope: "settings",
    keywords: ["create", "revoke", "rotate", "secret", "token"],
  },
  { id: "settings.members", title: "Settings: Members", scope: "settings", keywords: ["people", "invite", "roles"] },
  { id: "settings.teams", title: "Settings: Teams", scope: "settings", keywords: ["groups"] },
  { id: "settings.limits", title: "Settings: Limits", scope: "settings", keywords: ["quotas"] },
  {
    id: "settings.notifications",
    title: "Settings: Notifications",
    scope: "settings",
    keywords: ["push", "quiet hours", "phone"],
  },
  { id: "settings.next-section", title: "Next section", scope: "settings", shortcut: "]", isHidden: true },
  { id: "settings.previous-section", title: "Previous section", scope: "settings", shortcut: "[", isHidden: true },
]);
