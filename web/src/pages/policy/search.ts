// The address of the policy page: the section, and what it shows. Other sections do not use a parameter of one.
import { compact, type RawSearch, readFlag, readOneOf, readText } from "@/frame/search";

import { AUDIT_OUTCOMES, KINDS } from "./audit/describe";

/** In the order of the page. */
export const POLICY_SECTIONS = ["rules", "edit", "explain", "audit", "hooks"] as const;
export type PolicySection = (typeof POLICY_SECTIONS)[number];

export const POLICY_TITLES: Record<PolicySection, string> = {
  rules: "Rules",
  edit: "Edit and test",
  explain: "Explain",
  audit: "Audit",
  hooks: "Hooks",
};

export function readPolicySearch(search: RawSearch) {
  return compact({
    section: readOneOf(search, "section", POLICY_SECTIONS),
    /** A part of the rules that are listed. */
    q: readText(search, "q"),
    /** The call to explain: a tool, and a command or its input as JSON. */
    tool: readText(search, "tool"),
    call: readText(search, "call"),
    /** Past calls on which rules are tested: since when, and which changes are shown. */
    since: readOneOf(search, "since", ["1d", "30d", "all"]),
    change: readText(search, "change"),
    agent: readText(search, "agent"),
    project: readText(search, "project"),
    session: readText(search, "session"),
    /** Filters of the audit trail, beside `tool` and `session`, and its selected entry. */
    kind: readOneOf(search, "kind", KINDS),
    outcome: readOneOf(search, "outcome", AUDIT_OUTCOMES),
    member: readText(search, "member"),
    from: readText(search, "from"),
    until: readText(search, "until"),
    order: readOneOf(search, "order", ["asc"]),
    item: readText(search, "item"),
    open: readFlag(search, "open"),
  });
}

export type PolicySearch = ReturnType<typeof readPolicySearch>;
