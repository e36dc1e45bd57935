// The address of the settings: the section, its selected entry, and whether entries that no longer count are shown.
import { compact, type RawSearch, readFlag, readOneOf, readText } from "@/frame/search";

/** In the order of the page. */
export const SETTINGS_SECTIONS = [
  "agents",
  "environments",
  "projects",
  "webhooks",
  "keys",
  "members",
  "teams",
  "limits",
  "notifications",
] as const;
export type SettingsSection = (typeof SETTINGS_SECTIONS)[number];

export const SECTION_TITLES: Record<SettingsSection, string> = {
  agents: "Agents",
  environments: "Environments",
  projects: "Projects",
  webhooks: "Webhooks",
  keys: "API keys",
  members: "Members",
  teams: "Teams",
  limits: "Limits",
  notifications: "Notifications",
};

export function readSettingsSearch(search: RawSearch) {
  return compact({
    section: readOneOf(search, "section", SETTINGS_SECTIONS),
    /** The id of the selected entry of the section. */
    item: readText(search, "item"),
    /** Also shows what is archived, revoked or disabled. */
    all: readFlag(search, "all"),
    /** The id of the row that the keyboard is on. */
    selected: readText(search, "selected"),
    /** Shows the form of the entry. */
    edit: readFlag(search, "edit"),
    /** The versions of an agent to compare, such as `2-5`. */
    versions: readText(search, "versions"),
    /** Shows only deliveries in this state. */
    status: readOneOf(search, "status", ["pending", "delivered", "failed"]),
  });
}

export type SettingsSearch = ReturnType<typeof readSettingsSearch>;
