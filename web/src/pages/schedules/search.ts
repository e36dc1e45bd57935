// The address of the list of schedules, and of one of them.
import { compact, type RawSearch, readFlag, readOneOf, readText } from "@/frame/search";

export function readSchedulesSearch(search: RawSearch) {
  return compact({
    status: readOneOf(search, "status", ["active", "paused"]),
    archived: readFlag(search, "archived"),
    selected: readText(search, "selected"),
  });
}

export type SchedulesSearch = ReturnType<typeof readSchedulesSearch>;

export function readScheduleSearch(search: RawSearch) {
  return compact({ failed: readFlag(search, "failed") });
}
