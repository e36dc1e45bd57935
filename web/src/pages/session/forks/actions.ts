// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const forksActions = defineActions([
  {
    id: "session.next-fork",
    title: "Select the next session of the family",
    scope: "session",
    shortcut: "j",
    isHidden: true,
    canRepeat: true,
  },
  {
    id: "session.previous-fork",
    title: "Select the previous session of the family",
    scope: "session",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  {
    id: "session.open-fork",
    title: "Open the selected session of the family",
    scope: "session",
    shortcut: "enter",
    isHidden: true,
  },
  { id: "session.pick-fork", title: "Mark the selected fork for comparing", scope: "session", shortcut: "m" },
  { id: "session.compare-forks", title: "Compare the marked forks", scope: "session", shortcut: "c" },
]);
