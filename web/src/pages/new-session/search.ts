// The address of the form for a new session: what is filled in.
import { compact, type RawSearch, readNumber, readText } from "@/frame/search";

export function readNewSessionSearch(search: RawSearch) {
  return compact({
    project_id: readText(search, "project_id"),
    agent_id: readText(search, "agent_id"),
    template_id: readText(search, "template_id"),
    attempts: readNumber(search, "attempts"),
    prompt: readText(search, "prompt"),
  });
}
