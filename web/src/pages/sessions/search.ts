// The address of the list of sessions: layout, filters and the selected session.
import { SESSION_STATES } from "@/api/session-state";
import { compact, type RawSearch, readFlag, readOneOf, readText } from "@/frame/search";

export function readSessionsSearch(search: RawSearch) {
  return compact({
    layout: readOneOf(search, "layout", ["list", "board"]),
    q: readText(search, "q"),
    state: readOneOf(search, "state", SESSION_STATES),
    project_id: readText(search, "project_id"),
    agent_id: readText(search, "agent_id"),
    owner_id: readText(search, "owner_id"),
    harness: readText(search, "harness"),
    pinned: readFlag(search, "pinned"),
    stuck: readFlag(search, "stuck"),
    selected: readText(search, "selected"),
  });
}
