// The address of the list of sessions: layout, filters, order and the selected session.
import type { SessionFilters } from "@/api/queries/sessions";
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
    parent_id: readText(search, "parent_id"),
    group_id: readText(search, "group_id"),
    pinned: readFlag(search, "pinned"),
    stuck: readFlag(search, "stuck"),
    order: readOneOf(search, "order", ["asc"]),
    selected: readText(search, "selected"),
  });
}

export type SessionsSearch = ReturnType<typeof readSessionsSearch>;

export function toFilters({ layout: _layout, selected: _selected, ...filters }: SessionsSearch): SessionFilters {
  return filters;
}

/** Whether anything but the state and the order narrows the list. */
export function isNarrowed({ state: _state, order: _order, ...others }: SessionFilters): boolean {
  return Object.keys(others).length > 0;
}

/** Filters to set, or to remove where they are undefined. */
export type FilterChange = {
  [K in keyof Omit<SessionsSearch, "layout" | "selected">]?: SessionsSearch[K] | undefined;
};
