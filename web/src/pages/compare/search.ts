// The address of the comparison: the sessions, the file, and how the diffs are shown.
import { compact, type RawSearch, readText } from "@/frame/search";

export function readCompareSearch(search: RawSearch) {
  return compact({
    /** Ids of two sessions with a comma between them. With one, the page offers the others. */
    sessions: readText(search, "sessions"),
    path: readText(search, "path"),
  });
}
