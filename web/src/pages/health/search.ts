// The address of Health: whether lost workers are shown, and the selected session.
import { compact, type RawSearch, readFlag, readText } from "@/frame/search";

export function readHealthSearch(search: RawSearch) {
  return compact({ lost: readFlag(search, "lost"), selected: readText(search, "selected") });
}

export type HealthSearch = ReturnType<typeof readHealthSearch>;
