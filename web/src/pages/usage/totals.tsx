// What the period used in total, beside the period before.
import type { SessionCount } from "@/api/queries/usage";
import { Skeleton } from "@/design/components/skeleton";
import { formatMoney, formatTokens } from "@/design/format";

import { explainCost, formatCost } from "./amounts";
import { amountOf, describeChange, type Figures } from "./figures";
import { describePeriod, type Period } from "./period";

interface Props {
  figures: Figures | undefined;
  sessions: SessionCount | undefined;
  before: { period: Period; figures: Figures | undefined; sessions: SessionCount | undefined };
}

interface Total {
  title: string;
  value: string | undefined;
  hint?: string | undefined;
  /** In words. Undefined: not loaded. */
  comparison: string | undefined;
}

const count = (value: number): string => value.toLocaleString("en-US");

function compare(now: number | null, before: number | null, shown: string): string {
  const change = describeChange(now, before);
  if (change !== null) {
    return `${change}, was ${shown}`;
  }
  return before === 0 ? "none before" : `was ${shown}`;
}

/** Null where not all is known: a comparison would mislead. */
function exactCost(figures: Figures): number | null {
  return figures.unpricedTurns > 0 ? null : amountOf(figures, "cost");
}

function describeSessions(sessions: SessionCount): string {
  return `${sessions.hasMore ? "> " : ""}${count(sessions.count)}`;
}

export function Totals({ figures: now, sessions, before }: Props) {
  const was = before.figures;
  const tokens = (figures: Figures): number => figures.input + figures.output;
  const exactSessions = (one: SessionCount): number | null => (one.hasMore ? null : one.count);
  const totals: Total[] = [
    {
      title: "Cost",
      value: now && (now.cost === null && now.unpricedTurns === 0 ? formatMoney(0) : formatCost(now)),
      hint: now && explainCost(now),
      comparison: now && was && compare(exactCost(now), exactCost(was), formatCost(was)),
    },
    {
      title: "Tokens",
      value: now && formatTokens(tokens(now)),
      hint:
        now &&
        `${count(now.input)} input, ${count(now.output)} output. Another ${count(now.cached)} were read from the cache.`,
      comparison: now && was && compare(tokens(now), tokens(was), formatTokens(tokens(was))),
    },
    {
      title: "Turns",
      value: now && count(now.turns),
      comparison: now && was && compare(now.turns, was.turns, count(was.turns)),
    },
    {
      title: "Sessions",
      value: sessions && describeSessions(sessions),
      hint: sessions?.hasMore === true ? "The server counts up to 1,000 sessions." : undefined,
      comparison:
        sessions &&
        before.sessions &&
        compare(exactSessions(sessions), exactSessions(before.sessions), describeSessions(before.sessions)),
    },
  ];
  return (
    <section aria-label="Totals" className="px-4 pt-4 pb-3">
      <dl className="grid grid-cols-4 gap-x-6 gap-y-3 max-md:grid-cols-2">
        {totals.map(({ title, value, hint, comparison }) => (
          <div key={title} className="min-w-0">
            <dt className="text-sm text-muted">{title}</dt>
            <dd title={hint}>
              {value === undefined ? (
                <Skeleton className="my-1 h-5 w-20" />
              ) : (
                <span className="block truncate text-xl font-semibold">{value}</span>
              )}
              <span className="block h-5 truncate text-sm text-muted" title={comparison}>
                {comparison ?? ""}
              </span>
            </dd>
          </div>
        ))}
      </dl>
      <p className="mt-2 text-sm text-muted">Compared with {describePeriod(before.period)}.</p>
    </section>
  );
}
