// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const newSessionActions = defineActions([
  { id: "new.start", title: "Start the session", scope: "new", shortcut: "mod+enter", keywords: ["run", "create"] },
  { id: "new.attach", title: "Attach files", scope: "new", keywords: ["upload", "image"] },
  { id: "new.use-template", title: "Use a template", scope: "new" },
  { id: "new.save-template", title: "Save as a template", scope: "new" },
  { id: "new.delete-template", title: "Delete a template", scope: "new" },
  { id: "new.copy-command", title: "Copy as a command", scope: "new", keywords: ["cli", "terminal"] },
  { id: "new.copy-python", title: "Copy as Python", scope: "new", keywords: ["sdk", "code"] },
  { id: "new.more", title: "Show more options", scope: "new", keywords: ["limits", "rules", "title"] },
  { id: "new.clear", title: "Clear the draft", scope: "new", keywords: ["reset"] },
]);
