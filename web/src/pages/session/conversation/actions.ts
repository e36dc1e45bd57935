// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const conversationActions = defineActions([
  { id: "session.next-event", title: "Next event", scope: "session", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "session.previous-event",
    title: "Previous event",
    scope: "session",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "session.open-event", title: "Open or fold the event", scope: "session", shortcut: "enter", isHidden: true },
  { id: "session.next-turn", title: "Next turn", scope: "session", shortcut: "]", canRepeat: true },
  { id: "session.previous-turn", title: "Previous turn", scope: "session", shortcut: "[", canRepeat: true },
  { id: "session.newest", title: "Go to the newest event", scope: "session", shortcut: "shift+g", keywords: ["end"] },
  { id: "session.copy-event-link", title: "Copy the link to the event", scope: "session", shortcut: "shift+y" },
  { id: "session.fork-here", title: "Fork at this event", scope: "session", shortcut: "f", keywords: ["branch"] },
  { id: "session.reply", title: "Write to the agent", scope: "session", shortcut: "r", keywords: ["message"] },
  { id: "session.send", title: "Send the message", scope: "session" },
  { id: "session.steer", title: "Send the message into the running turn", scope: "session", shortcut: "alt+enter" },
  { id: "session.interrupt-and-send", title: "Interrupt the turn and send the message", scope: "session" },
  { id: "session.attach", title: "Attach files", scope: "session", keywords: ["upload", "image"] },
  { id: "session.show-output", title: "Open the whole output of the event", scope: "session", shortcut: "o" },
]);
