// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const usageActions = defineActions([
  { id: "usage.next", title: "Next row", scope: "usage", shortcut: "j", isHidden: true, canRepeat: true },
  { id: "usage.previous", title: "Previous row", scope: "usage", shortcut: "k", isHidden: true, canRepeat: true },
  { id: "usage.open", title: "Show the sessions of the row", scope: "usage", shortcut: "enter" },
  { id: "usage.period-7d", title: "Show 7 days", scope: "usage", shortcut: "1", keywords: ["week"] },
  { id: "usage.period-30d", title: "Show 30 days", scope: "usage", shortcut: "2" },
  { id: "usage.period-90d", title: "Show 90 days", scope: "usage", shortcut: "3", keywords: ["quarter"] },
  { id: "usage.period-month", title: "Show this month", scope: "usage", shortcut: "4" },
  { id: "usage.period-own", title: "Choose the days", scope: "usage", shortcut: "5", keywords: ["range", "period"] },
  { id: "usage.previous-group", title: "Previous grouping", scope: "usage", shortcut: "[", isHidden: true },
  { id: "usage.next-group", title: "Next grouping", scope: "usage", shortcut: "]", isHidden: true },
  { id: "usage.by-day", title: "Group usage by day", scope: "usage" },
  { id: "usage.by-model", title: "Group usage by model", scope: "usage" },
  { id: "usage.by-agent", title: "Group usage by agent", scope: "usage" },
  { id: "usage.by-project", title: "Group usage by project", scope: "usage" },
  { id: "usage.by-member", title: "Group usage by member", scope: "usage", keywords: ["person", "people"] },
  {
    id: "usage.measure",
    title: "Switch between cost, tokens and turns",
    scope: "usage",
    shortcut: "m",
    keywords: ["chart"],
  },
  { id: "usage.sort", title: "Sort by the next column", scope: "usage", shortcut: "s" },
  { id: "usage.reverse", title: "Reverse the order of the rows", scope: "usage", shortcut: "shift+s" },
  { id: "usage.download-csv", title: "Download as CSV", scope: "usage", shortcut: "d", keywords: ["export", "table"] },
  { id: "usage.download-json", title: "Download as JSON", scope: "usage", keywords: ["export"] },
  { id: "usage.copy-command", title: "Copy the command", scope: "usage", shortcut: "c", keywords: ["terminal", "cli"] },
]);
