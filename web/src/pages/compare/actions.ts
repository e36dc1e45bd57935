// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const compareActions = defineActions([
  {
    id: "compare.next-file",
    title: "Next file of both",
    scope: "session",
    shortcut: "j",
    isHidden: true,
    canRepeat: true,
  },
  {
    id: "compare.previous-file",
    title: "Previous file of both",
    scope: "session",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "compare.keep-first", title: "Keep the attempt on the left", scope: "session", shortcut: "1" },
  { id: "compare.keep-second", title: "Keep the attempt on the right", scope: "session", shortcut: "2" },
  { id: "compare.swap", title: "Swap the sides", scope: "session", shortcut: "x" },
  { id: "compare.choose", title: "Compare with another session", scope: "session", shortcut: "o" },
]);
