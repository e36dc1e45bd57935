// The actions of this page. Each needs a browser test.
import { defineActions } from "@/actions/registry";

export const policyActions = defineActions([
  // The frame offers these on every page.
  { id: "policy.rules", title: "Policy: Rules", scope: "policy", keywords: ["permissions", "layers"] },
  { id: "policy.edit", title: "Policy: Edit and test", scope: "policy", keywords: ["change", "replay", "approvals"] },
  { id: "policy.explain", title: "Policy: Explain", scope: "policy", keywords: ["command", "decision", "why"] },
  { id: "policy.audit", title: "Policy: Audit", scope: "policy", keywords: ["trail", "log", "decisions", "who"] },
  { id: "policy.hooks", title: "Policy: Hooks", scope: "policy", keywords: ["programs", "events"] },
  { id: "policy.next-section", title: "Next section", scope: "policy", shortcut: "]", isHidden: true },
  { id: "policy.previous-section", title: "Previous section", scope: "policy", shortcut: "[", isHidden: true },
  { id: "policy.find", title: "Find a rule", scope: "policy", shortcut: "/", keywords: ["search", "filter"] },
  { id: "policy.save", title: "Check and save the rules", scope: "policy", shortcut: "mod+enter" },
  {
    id: "policy.replay",
    title: "Test the rules on past calls",
    scope: "policy",
    shortcut: "mod+shift+enter",
    keywords: ["replay"],
  },
  { id: "policy.explain-call", title: "Explain the call", scope: "policy", shortcut: "mod+enter" },
  { id: "policy.next-entry", title: "Next entry", scope: "policy", shortcut: "j", isHidden: true, canRepeat: true },
  {
    id: "policy.previous-entry",
    title: "Previous entry",
    scope: "policy",
    shortcut: "k",
    isHidden: true,
    canRepeat: true,
  },
  { id: "policy.open-entry", title: "Show or hide the entry", scope: "policy", shortcut: "enter", isHidden: true },
  {
    id: "policy.reverse",
    title: "Reverse the order of the audit trail",
    scope: "policy",
    keywords: ["oldest", "newest"],
  },
  { id: "policy.export", title: "Export the audit trail", scope: "policy", keywords: ["download", "jsonl"] },
  { id: "policy.verify", title: "Verify the audit trail", scope: "policy", keywords: ["hash", "chain", "head"] },
]);
