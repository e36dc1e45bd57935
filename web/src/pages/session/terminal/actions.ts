// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const terminalActions = defineActions([
  { id: "session.open-terminal", title: "Open a shell", scope: "session", shortcut: "s", keywords: ["terminal"] },
  {
    id: "session.type-in-terminal",
    title: "Type in the terminal",
    scope: "session",
    shortcut: "w",
    keywords: ["write"],
  },
  { id: "session.watch-terminal", title: "Only watch the terminal", scope: "session", keywords: ["read"] },
  { id: "session.search-terminal", title: "Search in the terminal", scope: "session", shortcut: "mod+shift+f" },
  { id: "session.detach-terminal", title: "Detach from the terminal", scope: "session", keywords: ["leave"] },
  { id: "session.attach-terminal", title: "Return to the terminal", scope: "session", keywords: ["attach"] },
  { id: "session.close-terminal", title: "Close the shell", scope: "session", keywords: ["interrupt", "end"] },
  { id: "session.download-recording", title: "Download the newest recording of the terminal", scope: "session" },
]);
