// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const inboxActions = defineActions([
  { id: "inbox.next", title: "Next item", scope: "inbox", shortcut: "j", isHidden: true, canRepeat: true },
  { id: "inbox.previous", title: "Previous item", scope: "inbox", shortcut: "k", isHidden: true, canRepeat: true },
  { id: "inbox.allow", title: "Allow the call", scope: "inbox", shortcut: "a", keywords: ["approve", "yes"] },
  { id: "inbox.allow-in-session", title: "Allow such calls in this session", scope: "inbox", shortcut: "s" },
  { id: "inbox.edit", title: "Edit the call before it runs", scope: "inbox", shortcut: "e" },
  { id: "inbox.deny", title: "Deny the call", scope: "inbox", shortcut: "d", keywords: ["reject", "no"] },
  { id: "inbox.reply", title: "Reply to the agent", scope: "inbox", shortcut: "r", keywords: ["answer", "message"] },
  { id: "inbox.dismiss", title: "Dismiss the item", scope: "inbox", shortcut: "x" },
  { id: "inbox.snooze", title: "Snooze the item", scope: "inbox", shortcut: "z", keywords: ["later"] },
  { id: "inbox.assign", title: "Assign the item", scope: "inbox", shortcut: "m" },
  { id: "inbox.open-session", title: "Open the session of the item", scope: "inbox", shortcut: "o" },
  { id: "inbox.needs-you", title: "Show what needs you", scope: "inbox", shortcut: "1" },
  { id: "inbox.mine", title: "Show what is assigned to you", scope: "inbox", shortcut: "2" },
  { id: "inbox.snoozed", title: "Show what is snoozed", scope: "inbox", shortcut: "3" },
  { id: "inbox.filter-kind", title: "Filter the inbox by kind", scope: "inbox" },
  { id: "inbox.filter-project", title: "Filter the inbox by project", scope: "inbox" },
  { id: "inbox.clear-filters", title: "Clear the filters of the inbox", scope: "inbox" },
]);
