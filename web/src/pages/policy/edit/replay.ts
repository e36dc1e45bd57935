// What a replay found: how many past calls the rules would decide otherwise, and which.
import type { ChangedCall, Outcome, ReplayPage } from "@/api/queries/policy";

export interface Transition {
  was: Outcome;
  would: Outcome;
  count: number;
}

export interface ReplayTotals {
  /** Calls that were evaluated. */
  calls: number;
  unchanged: number;
  /** Calls whose input is not stored any more. */
  gone: number;
  dependOnLinks: number;
  dependOnHooks: number;
  /** The time of the oldest call. Null: there is none. */
  oldestAt: string | null;
  /** The strictest new outcome first. */
  transitions: Transition[];
  changed: ChangedCall[];
}

const STRICTEST_FIRST: readonly Outcome[] = ["deny", "ask", "allow"];

export function sumPages(pages: readonly ReplayPage[]): ReplayTotals {
  const sum = (count: (page: ReplayPage) => number): number => pages.reduce((total, page) => total + count(page), 0);
  const transitions = STRICTEST_FIRST.flatMap((would) =>
    STRICTEST_FIRST.filter((was) => was !== would).map((was) => ({
      was,
      would,
      count: sum((page) => page.outcomes[was]?.[would] ?? 0),
    })),
  ).filter(({ count }) => count > 0);
  const calls = sum((page) => page.calls);
  return {
    calls,
    unchanged: transitions.reduce((rest, { count }) => rest - count, calls),
    gone: sum((page) => page.gone),
    dependOnLinks: sum((page) => page.depend_on_links),
    dependOnHooks: sum((page) => page.depend_on_hooks),
    oldestAt: pages.findLast((page) => page.oldest_at !== null)?.oldest_at ?? null,
    transitions,
    changed: pages.flatMap((page) => page.data),
  };
}

/** What makes the figures uncertain. */
export function describeDoubts({ gone, dependOnLinks, dependOnHooks }: ReplayTotals): string[] {
  const count = (number: number, one: string, many: string): string[] =>
    number === 0 ? [] : [`${number.toLocaleString("en-US")} ${number === 1 ? one : many}`];
  return [
    ...count(dependOnHooks, "call would also be decided by a hook", "calls would also be decided by hooks"),
    ...count(dependOnLinks, "call depends on symbolic links", "calls depend on symbolic links"),
    ...count(
      gone,
      "call was not evaluated, because its input is deleted or archived",
      "calls were not evaluated, because their inputs are deleted or archived",
    ),
  ];
}

/** `deny-allow` in the address: calls that were denied and would be allowed. */
export function transitionKey({ was, would }: Pick<Transition, "was" | "would">): string {
  return `${was}-${would}`;
}

const DAYS: Record<string, number> = { "1d": 1, "7d": 7, "30d": 30 };

/** The beginning of a period of the address. Undefined: all calls. */
export function startOf(period: string, now: Date): string | undefined {
  const days = DAYS[period];
  return days === undefined ? undefined : new Date(now.getTime() - days * 86_400_000).toISOString();
}
