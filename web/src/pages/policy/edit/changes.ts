// What an edited policy changes: rules that are added, removed or moved, hooks, approval settings, and what follows.
import type { ApprovalTerms, Outcome } from "@/api/queries/policy";

import { countRules, formatLimit, type HookEntry, listHooks, OUTCOMES } from "../model";
import type { EditedPolicy } from "./model";

export interface RuleChange {
  rule: string;
  /** Null: the rule is added. */
  from: Outcome | null;
  /** Null: the rule is removed. */
  to: Outcome | null;
}

export interface TermChange {
  title: string;
  before: string;
  after: string;
}

export interface PolicyChanges {
  rules: RuleChange[];
  addedHooks: HookEntry[];
  removedHooks: HookEntry[];
  /** Whether the same hooks run in another order, or their groups differ. */
  hasOtherHookOrder: boolean;
  terms: TermChange[];
}

/** The order of rules has no effect, so it is no change. */
export function findChanges(before: EditedPolicy, after: EditedPolicy): PolicyChanges {
  const key = (hook: HookEntry): string => JSON.stringify(hook);
  const old = listHooks(before.permissions.hooks);
  const next = listHooks(after.permissions.hooks);
  const addedHooks = subtract(next, old, key);
  const removedHooks = subtract(old, next, key);
  const isSame = JSON.stringify(before.permissions.hooks ?? {}) === JSON.stringify(after.permissions.hooks ?? {});
  return {
    rules: findRuleChanges(before, after),
    addedHooks,
    removedHooks,
    hasOtherHookOrder: !isSame && addedHooks.length === 0 && removedHooks.length === 0,
    terms: findTermChanges(before.approvals, after.approvals),
  };
}

export function countChanges({ rules, addedHooks, removedHooks, hasOtherHookOrder, terms }: PolicyChanges): number {
  return rules.length + addedHooks.length + removedHooks.length + (hasOtherHookOrder ? 1 : 0) + terms.length;
}

function subtract<T>(from: readonly T[], other: readonly T[], key: (one: T) => string): T[] {
  const known = new Set(other.map(key));
  return from.filter((one) => !known.has(key(one)));
}

function findRuleChanges(before: EditedPolicy, after: EditedPolicy): RuleChange[] {
  const old = outcomesByRule(before);
  const next = outcomesByRule(after);
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((rule): RuleChange[] => {
    const removed = OUTCOMES.filter((one) => old.get(rule)?.has(one) === true && next.get(rule)?.has(one) !== true);
    const added = OUTCOMES.filter((one) => next.get(rule)?.has(one) === true && old.get(rule)?.has(one) !== true);
    const [from] = removed;
    const [to] = added;
    if (from !== undefined && to !== undefined && removed.length === 1 && added.length === 1) {
      return [{ rule, from, to }];
    }
    return [
      ...removed.map((one) => ({ rule, from: one, to: null })),
      ...added.map((one) => ({ rule, from: null, to: one })),
    ];
  });
}

function outcomesByRule({ permissions }: EditedPolicy): Map<string, Set<Outcome>> {
  const found = new Map<string, Set<Outcome>>();
  for (const outcome of OUTCOMES) {
    for (const rule of permissions[outcome]) {
      found.set(rule, (found.get(rule) ?? new Set()).add(outcome));
    }
  }
  return found;
}

function findTermChanges(before: ApprovalTerms, after: ApprovalTerms): TermChange[] {
  return TERMS.map(({ title, describe }) => ({ title, before: describe(before), after: describe(after) })).filter(
    (term) => term.before !== term.after,
  );
}

const TERMS: readonly { title: string; describe: (terms: ApprovalTerms) => string }[] = [
  {
    title: "Time limit",
    describe: ({ expires_after_seconds: seconds }) => (seconds === null ? "none" : formatLimit(seconds)),
  },
  { title: "After the time limit", describe: ({ outcome }) => outcome },
  { title: "Role that decides", describe: ({ role }) => role ?? "any" },
  { title: "A second person decides", describe: ({ two_people: isOn }) => (isOn ? "yes" : "no") },
];

/** What follows from the change beyond the rules themselves. Null: nothing special. */
export function describeDefault(before: EditedPolicy, after: EditedPolicy): string | null {
  const had = countRules(before.permissions) > 0;
  const has = countRules(after.permissions) > 0;
  if (!had && has) {
    return "These are the first rules of the organisation. From then on, a call that no rule matches needs approval, except reads inside the working tree.";
  }
  if (had && !has) {
    return "The organisation then has no rules. In sessions without any other rules, all tools run without approval, except those of MCP servers.";
  }
  return null;
}
