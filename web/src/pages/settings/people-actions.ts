// The actions of the sections API keys, Members, Teams and Limits. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const settingsPeopleActions = defineActions([
  {
    id: "settings.new-key",
    title: "New API key",
    scope: "settings",
    shortcut: "c",
    keywords: ["create", "secret", "token"],
  },
  {
    id: "settings.rotate-key",
    title: "Replace the secret of the API key",
    scope: "settings",
    shortcut: "r",
    keywords: ["rotate"],
  },
  {
    id: "settings.revoke-key",
    title: "Revoke the API key",
    scope: "settings",
    shortcut: "shift+d",
    keywords: ["delete", "remove"],
  },
  { id: "settings.show-revoked-keys", title: "Show revoked API keys", scope: "settings" },
  {
    id: "settings.new-member",
    title: "Add a member",
    scope: "settings",
    shortcut: "c",
    keywords: ["create", "person", "service account"],
  },
  { id: "settings.change-roles", title: "Change the roles of the member", scope: "settings", shortcut: "e" },
  {
    id: "settings.disable-member",
    title: "Disable or enable the member",
    scope: "settings",
    shortcut: "shift+d",
    keywords: ["remove", "lock out", "leave"],
  },
  {
    id: "settings.hand-over",
    title: "Hand over the work of the disabled member",
    scope: "settings",
    shortcut: "h",
    keywords: ["successor", "sessions"],
  },
  { id: "settings.show-disabled-members", title: "Show disabled members", scope: "settings" },
  { id: "settings.new-team", title: "New team", scope: "settings", shortcut: "c", keywords: ["create", "group"] },
  {
    id: "settings.change-team",
    title: "Add and remove members of the team",
    scope: "settings",
    shortcut: "e",
    keywords: ["edit"],
  },
  { id: "settings.set-limit", title: "Set a limit", scope: "settings", shortcut: "e", keywords: ["change", "quota"] },
  {
    id: "settings.unset-limit",
    title: "Remove the limit",
    scope: "settings",
    shortcut: "shift+d",
    keywords: ["unset", "unlimited"],
  },
]);
