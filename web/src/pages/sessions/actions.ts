// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const sessionsActions = defineActions([
  { id: "sessions.next", title: "Next session", scope: "sessions", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "sessions.previous",
    title: "Previous session",
    scope: "sessions",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "sessions.open", title: "Open the session", scope: "sessions", shortcut: "enter" },
  { id: "sessions.select", title: "Select the session", scope: "sessions", shortcut: "x" },
  { id: "sessions.select-range", title: "Select up to the session", scope: "sessions", shortcut: "shift+x" },
  { id: "sessions.clear-selection", title: "Clear the selection", scope: "sessions", shortcut: "escape" },
  { id: "sessions.compare", title: "Compare the two selected sessions", scope: "sessions", shortcut: "c" },
  { id: "sessions.search", title: "Search the sessions", scope: "sessions", shortcut: "/", keywords: ["find"] },
  { id: "sessions.toggle-layout", title: "Switch between list and board", scope: "sessions", shortcut: "l" },
  { id: "sessions.pin", title: "Pin or unpin", scope: "sessions", shortcut: "p", keywords: ["favourite"] },
  { id: "sessions.interrupt", title: "Interrupt", scope: "sessions", shortcut: "shift+i", keywords: ["stop"] },
  { id: "sessions.pause", title: "Pause", scope: "sessions", shortcut: "shift+p" },
  { id: "sessions.play", title: "Play", scope: "sessions", keywords: ["continue", "resume"] },
  { id: "sessions.archive", title: "Archive", scope: "sessions", shortcut: "e" },
  { id: "sessions.delete", title: "Delete", scope: "sessions", shortcut: "shift+d", keywords: ["remove"] },
  { id: "sessions.filter", title: "Filter the sessions", scope: "sessions", shortcut: "f" },
  { id: "sessions.pinned-only", title: "Show only pinned sessions", scope: "sessions" },
  { id: "sessions.stuck-only", title: "Show only stuck sessions", scope: "sessions", keywords: ["blocked", "stalled"] },
  { id: "sessions.reverse-order", title: "Reverse the order by age", scope: "sessions", keywords: ["sort", "oldest"] },
  { id: "sessions.clear-filters", title: "Clear the filters of the sessions", scope: "sessions" },
]);
