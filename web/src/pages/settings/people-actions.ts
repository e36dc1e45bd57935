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
]);
