// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const childrenActions = defineActions([
  {
    id: "session.next-child",
    title: "Select the next session",
    scope: "session",
    shortcut: "j",
    isHidden: true,
    canRepeat: true,
  },
  {
    id: "session.previous-child",
    title: "Select the previous session",
    scope: "session",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "session.open-child", title: "Open the selected session", scope: "session", shortcut: "enter", isHidden: true },
  {
    id: "session.fold-child",
    title: "Fold or unfold the selected session",
    scope: "session",
    shortcut: "h",
    keywords: ["collapse"],
  },
  { id: "session.pick-child", title: "Mark the selected session for comparing", scope: "session", shortcut: "m" },
  { id: "session.compare-children", title: "Compare the marked sessions", scope: "session", shortcut: "c" },
  {
    id: "session.cancel-child",
    title: "Cancel the selected session",
    scope: "session",
    shortcut: "x",
    keywords: ["stop", "end"],
  },
]);
