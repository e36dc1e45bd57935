// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const schedulesActions = defineActions([
  { id: "schedules.next", title: "Next schedule", scope: "schedules", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "schedules.previous",
    title: "Previous schedule",
    scope: "schedules",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "schedules.open", title: "Open the schedule", scope: "schedules", shortcut: "enter" },
  { id: "schedules.new", title: "New schedule", scope: "schedules", shortcut: "c", keywords: ["create", "cron"] },
  { id: "schedules.edit", title: "Edit the schedule", scope: "schedules", shortcut: "e", keywords: ["change"] },
  { id: "schedules.run", title: "Run the schedule now", scope: "schedules", shortcut: "r", keywords: ["start"] },
  { id: "schedules.pause", title: "Pause or resume the schedule", scope: "schedules", shortcut: "p" },
  {
    id: "schedules.archive",
    title: "Archive the schedule",
    scope: "schedules",
    shortcut: "shift+d",
    keywords: ["delete", "remove", "end"],
  },
  { id: "schedules.show-archived", title: "Show archived schedules", scope: "schedules" },
  {
    id: "schedules.failed-runs",
    title: "Show only runs without a session",
    scope: "schedules",
    keywords: ["error", "skipped"],
  },
  { id: "schedules.add-step", title: "Add a step to the schedule", scope: "schedules", keywords: ["command"] },
  { id: "schedules.save", title: "Save the schedule", scope: "schedules", shortcut: "mod+enter" },
]);
