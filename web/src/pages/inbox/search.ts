// The address of the inbox: view, filters and the selected item.
import type { InboxKind, InboxView } from "@/api/contract";
import { compact, type RawSearch, readOneOf, readText } from "@/frame/search";

const VIEWS: readonly InboxView[] = ["needs_you", "mine", "snoozed"];
const KINDS: readonly InboxKind[] = ["approval", "question", "failure", "merge_conflict"];

export function readInboxSearch(search: RawSearch) {
  return compact({
    view: readOneOf(search, "view", VIEWS),
    kind: readOneOf(search, "kind", KINDS),
    project_id: readText(search, "project_id"),
    item: readText(search, "item"),
  });
}
