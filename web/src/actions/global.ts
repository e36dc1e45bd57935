// The actions of the frame, which work on every page.
import { defineActions } from "./registry";

export const globalActions = defineActions([
  { id: "global.palette", title: "Open the command palette", scope: "global", shortcut: "mod+k", isHidden: true },
  {
    id: "global.shortcuts",
    title: "Show the keyboard shortcuts",
    scope: "global",
    shortcut: "?",
    keywords: ["help", "keys"],
  },
  { id: "global.inbox", title: "Go to Inbox", scope: "global", shortcut: "g i", keywords: ["approvals", "questions"] },
  { id: "global.sessions", title: "Go to Sessions", scope: "global", shortcut: "g s" },
  { id: "global.schedules", title: "Go to Schedules", scope: "global", shortcut: "g c", keywords: ["deployments"] },
  { id: "global.usage", title: "Go to Usage", scope: "global", shortcut: "g u", keywords: ["cost"] },
  { id: "global.policy", title: "Go to Policy", scope: "global", shortcut: "g p", keywords: ["rules", "audit"] },
  {
    id: "global.settings",
    title: "Go to Settings",
    scope: "global",
    shortcut: "g t",
    keywords: ["agents", "projects"],
  },
  { id: "global.health", title: "Go to Health", scope: "global", shortcut: "g h", keywords: ["workers", "queues"] },
  { id: "global.new-session", title: "New session", scope: "global", shortcut: "n", keywords: ["start", "run"] },
  { id: "global.copy-link", title: "Copy the link to this view", scope: "global", shortcut: "y" },
  { id: "global.theme-light", title: "Use the light theme", scope: "global", keywords: ["appearance"] },
  { id: "global.theme-dark", title: "Use the dark theme", scope: "global", keywords: ["appearance"] },
  { id: "global.theme-system", title: "Use the theme of the system", scope: "global", keywords: ["appearance"] },
  { id: "global.sign-out", title: "Sign out", scope: "global" },
]);
