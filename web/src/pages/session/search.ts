// The address inside a session: tab, thread, event, turn, file and lines.
import { compact, type RawSearch, readOneOf, readText } from "@/frame/search";

export const SESSION_TABS = ["conversation", "changes", "files", "terminal", "steps", "children", "forks"] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

export function readSessionSearch(search: RawSearch) {
  return compact({
    tab: readOneOf(search, "tab", SESSION_TABS),
    thread: readText(search, "thread"),
    event: readText(search, "event"),
    turn: readText(search, "turn"),
    path: readText(search, "path"),
    /** `12` or `12-20`, with the prefix `old:` for the old side. */
    lines: readText(search, "lines"),
    compare: readText(search, "compare"),
    step: readText(search, "step"),
    /** Sessions that are marked to be compared, separated by commas. */
    picked: readText(search, "picked"),
  });
}
