// The actions of the sections Agents, Environments, Projects and Webhooks. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const settingsWorkActions = defineActions([
  { id: "settings.work-next", title: "Next entry", scope: "settings", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "settings.work-previous",
    title: "Previous entry",
    scope: "settings",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "settings.work-open", title: "Open the entry", scope: "settings", shortcut: "enter" },
  { id: "settings.work-archived", title: "Show or hide archived entries", scope: "settings" },
  { id: "settings.work-save", title: "Save the form", scope: "settings", shortcut: "mod+enter" },
  { id: "settings.agent-new", title: "New agent", scope: "settings", shortcut: "c", keywords: ["create"] },
  { id: "settings.agent-edit", title: "Edit the agent", scope: "settings", shortcut: "e", keywords: ["change"] },
  {
    id: "settings.agent-compare",
    title: "Compare versions of the agent",
    scope: "settings",
    shortcut: "v",
    keywords: ["diff", "history"],
  },
  {
    id: "settings.agent-session",
    title: "Start a session with the agent",
    scope: "settings",
    shortcut: "s",
    keywords: ["new"],
  },
  {
    id: "settings.agent-archive",
    title: "Archive the agent",
    scope: "settings",
    shortcut: "shift+d",
    keywords: ["delete", "remove"],
  },
]);
