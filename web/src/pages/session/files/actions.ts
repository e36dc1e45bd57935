// The actions of this tab. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const filesActions = defineActions([
  { id: "files.next", title: "Next file", scope: "session", shortcut: "j", isHidden: true, canRepeat: true },
  { id: "files.previous", title: "Previous file", scope: "session", shortcut: "k", isHidden: true, canRepeat: true },
  { id: "files.download", title: "Download the file", scope: "session", shortcut: "d", keywords: ["save"] },
  { id: "files.delete", title: "Delete the output", scope: "session", keywords: ["remove"] },
]);
