// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const sessionActions = defineActions([
  { id: "session.tab-conversation", title: "Show the conversation", scope: "session", shortcut: "1" },
  { id: "session.tab-changes", title: "Show the changes", scope: "session", shortcut: "2", keywords: ["diff"] },
  { id: "session.tab-files", title: "Show the files", scope: "session", shortcut: "3", keywords: ["outputs"] },
  { id: "session.tab-terminal", title: "Show the terminal", scope: "session", shortcut: "4", keywords: ["shell"] },
  { id: "session.tab-steps", title: "Show the steps", scope: "session", shortcut: "5", keywords: ["queue"] },
  { id: "session.tab-children", title: "Show the children", scope: "session", shortcut: "6" },
  { id: "session.tab-forks", title: "Show the forks", scope: "session", shortcut: "7" },
  { id: "session.pause", title: "Pause the session", scope: "session", shortcut: "p" },
  { id: "session.play", title: "Play the session", scope: "session", shortcut: "p", keywords: ["resume", "continue"] },
  { id: "session.interrupt", title: "Interrupt the running turn", scope: "session", shortcut: "i", keywords: ["stop"] },
  {
    id: "session.fork",
    title: "Fork the session",
    scope: "session",
    shortcut: "shift+f",
    keywords: ["branch", "copy"],
  },
  { id: "session.rename", title: "Rename the session", scope: "session", shortcut: "shift+r", keywords: ["title"] },
  { id: "session.pin", title: "Pin the session to the sidebar", scope: "session" },
  { id: "session.unpin", title: "Unpin the session", scope: "session" },
  { id: "session.export-events", title: "Export the events", scope: "session", keywords: ["download", "log"] },
  {
    id: "session.export-transcript",
    title: "Export the transcript",
    scope: "session",
    keywords: ["download", "claude code"],
  },
  {
    id: "session.export-bundle",
    title: "Export the commits as a git bundle",
    scope: "session",
    keywords: ["download"],
  },
  { id: "session.end", title: "End the session", scope: "session", keywords: ["close", "finish"] },
  { id: "session.archive", title: "Archive the session", scope: "session" },
  { id: "session.delete", title: "Delete the session", scope: "session", keywords: ["remove"] },
]);
