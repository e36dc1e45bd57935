// The address inside a session: tab, thread, event, turn, file and lines.
import { compact, type RawSearch, readOneOf, readText } from "@/frame/search";

export const SESSION_TABS = ["conversation", "changes", "files", "terminal", "steps", "children", "forks"] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

export const DIFF_LAYOUTS = ["unified", "split"] as const;
export type DiffLayout = (typeof DIFF_LAYOUTS)[number];
/** The states of changes in git. */
export const CHANGE_STATES = ["committed", "staged", "unstaged", "untracked"] as const;

export function readSessionSearch(search: RawSearch) {
  return compact({
    tab: readOneOf(search, "tab", SESSION_TABS),
    thread: readText(search, "thread"),
    event: readText(search, "event"),
    /** A turn; in Changes also `turn_…..turn_…`, from the first to the last. */
    turn: readText(search, "turn"),
    path: readText(search, "path"),
    /** `L12` or `L12-20`; `old:12` for the old side. */
    lines: readText(search, "lines"),
    step: readText(search, "step"),
    /** Sessions that are marked to be compared, separated by commas. */
    picked: readText(search, "picked"),
    layout: readOneOf(search, "layout", DIFF_LAYOUTS),
    state: readOneOf(search, "state", CHANGE_STATES),
    project: readText(search, "project"),
    /** The file that is shown in Files. */
    file: readText(search, "file"),
  });
}
