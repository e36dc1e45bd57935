// What two attempts did and cost, row by row.
import { Link } from "@tanstack/react-router";
import { Check, Circle, X } from "lucide-react";
import { Fragment, type ReactNode, useState } from "react";

import { describeActivity } from "@/api/session-state";
import { cn } from "@/design/classes";
import { Button } from "@/design/components/button";
import { State } from "@/design/components/state";
import { formatDuration, formatMoney, formatTokens } from "@/design/format";
import { SafeText } from "@/design/text/text";
import { Counts } from "../session/changes/file-marks";
import { type Attempt, titleOf } from "./use-attempt";

const LONG_TEXT = 600;

interface Metric {
  title: string;
  show: (attempt: Attempt) => ReactNode;
  /** Less is better. Null: not known. */
  amount?: (attempt: Attempt) => number | null;
}

const METRICS: readonly Metric[] = [
  {
    title: "State",
    show: ({ session }) =>
      session !== undefined && (
        <span className="flex flex-wrap items-center gap-x-2">
          <State state={session.state} />
          {session.activity.state !== "completed" && (
            <span className="text-muted">{describeActivity(session.activity)}</span>
          )}
        </span>
      ),
  },
  {
    title: "Agent",
    show: ({ session }) =>
      session !== undefined && (
        <span className="break-words">
          <SafeText>{session.agent.name}</SafeText>
          <SafeText className="text-muted">{` · ${modelOf(session.agent.model)}`}</SafeText>
        </span>
      ),
  },
  { title: "Checks", show: ({ checks }) => <Checks checks={checks} /> },
  {
    title: "Changes",
    show: ({ tree, listed }) =>
      tree !== undefined && (
        <span className="flex items-center gap-2">
          {listed.length === 1 ? "1 file" : `${listed.length} files`}
          <Counts added={tree.added} deleted={tree.deleted} />
        </span>
      ),
  },
  {
    title: "Cost",
    show: ({ session }) => formatMoney(session?.usage.cost_microusd),
    amount: ({ session }) => session?.usage.cost_microusd ?? null,
  },
  {
    title: "Tokens",
    show: ({ session }) =>
      session === undefined
        ? null
        : `${formatTokens(session.usage.input_tokens)} in, ${formatTokens(session.usage.output_tokens)} out`,
    amount: ({ session }) => (session === undefined ? null : session.usage.input_tokens + session.usage.output_tokens),
  },
  {
    title: "Time worked",
    show: ({ session }) => (session === undefined ? null : formatDuration(session.stats.active_seconds)),
    amount: ({ session }) => session?.stats.active_seconds ?? null,
  },
  { title: "Turns", show: ({ turns }) => turns.length, amount: ({ turns }) => turns.length },
  { title: "Last message", show: (attempt) => <LastMessage attempt={attempt} /> },
];

interface MetricsProps {
  attempts: readonly [Attempt, Attempt];
  /** Null: possible. Otherwise the reason. */
  cannotKeep: (attempt: Attempt) => string | null;
  onKeep: (attempt: Attempt) => void;
}

export function Metrics({ attempts, cannotKeep, onKeep }: MetricsProps) {
  return (
    <div className="grid grid-cols-[9rem_1fr_1fr] border-b max-md:grid-cols-2" role="table" aria-label="Attempts">
      <div role="row" className="contents">
        <span role="columnheader" className="border-b px-4 py-3 max-md:hidden">
          <span className="sr-only">What</span>
        </span>
        {attempts.map((attempt, index) => (
          <header
            key={attempt.id}
            role="columnheader"
            className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-2 border-b bg-surface px-4 py-2 not-first:border-l max-md:px-3"
          >
            <span className="flex size-6 shrink-0 items-center justify-center rounded-sm bg-hover font-mono text-sm font-semibold">
              {index === 0 ? "A" : "B"}
            </span>
            <h2 className="min-w-0 flex-1 truncate font-semibold max-md:basis-32">
              <Link
                to="/sessions/$sessionId"
                params={{ sessionId: attempt.id }}
                className="hover:underline"
                title={titleOf(attempt)}
              >
                <SafeText>{titleOf(attempt)}</SafeText>
              </Link>
            </h2>
            <Button
              size="sm"
              className="max-md:h-11 max-md:w-full"
              shortcut={String(index + 1)}
              disabled={cannotKeep(attempt) !== null}
              title={cannotKeep(attempt) ?? undefined}
              onClick={() => {
                onKeep(attempt);
              }}
            >
              Keep this one
            </Button>
          </header>
        ))}
      </div>
      {METRICS.map((metric) => (
        <MetricRow key={metric.title} metric={metric} attempts={attempts} />
      ))}
    </div>
  );
}

function MetricRow({ metric, attempts }: { metric: Metric; attempts: readonly [Attempt, Attempt] }) {
  const [left, right] = attempts.map((attempt) => metric.amount?.(attempt) ?? null);
  return (
    <div role="row" className="contents">
      <span
        role="rowheader"
        className="px-4 py-1.5 text-muted max-md:col-span-2 max-md:px-3 max-md:pb-0 max-md:text-xs"
      >
        {metric.title}
      </span>
      {attempts.map((attempt, index) => {
        const [own, other] = index === 0 ? [left, right] : [right, left];
        const isLess = own != null && other != null && own < other;
        return (
          <Fragment key={attempt.id}>
            <div
              role="cell"
              className={cn(
                "min-w-0 border-l px-4 py-1.5 max-md:px-3 max-md:first-of-type:border-l-0",
                isLess && "font-medium",
              )}
            >
              {metric.show(attempt)}
              {isLess && <span className="ml-2 text-sm font-normal text-success">less</span>}
            </div>
          </Fragment>
        );
      })}
    </div>
  );
}

function modelOf(model: unknown): string {
  if (typeof model === "string") {
    return model;
  }
  const id = typeof model === "object" && model !== null && "id" in model ? model.id : null;
  return typeof id === "string" ? id : "";
}

const CHECK_STATES = {
  completed: { icon: Check, color: "text-success" },
  failed: { icon: X, color: "text-failed" },
} as const;

function Checks({ checks }: Pick<Attempt, "checks">) {
  if (checks.length === 0) {
    return <span className="text-muted">none</span>;
  }
  return (
    <ul className="flex flex-col gap-0.5">
      {checks.map((step) => {
        const known = step.state === "completed" || step.state === "failed" ? CHECK_STATES[step.state] : null;
        const Icon = known?.icon ?? Circle;
        const command = step["command"];
        return (
          <li key={step.id} className="flex min-w-0 items-center gap-1.5">
            <Icon aria-hidden className={cn("size-4 shrink-0", known?.color ?? "text-muted")} />
            <SafeText className="min-w-0 truncate font-mono text-sm">
              {step.name ?? (typeof command === "string" ? command : "command")}
            </SafeText>
            <span className="shrink-0 text-sm text-muted">{step.state}</span>
          </li>
        );
      })}
    </ul>
  );
}

function LastMessage({ attempt }: { attempt: Attempt }) {
  const [isOpen, setOpen] = useState(false);
  const turn = attempt.turns.findLast((one) => one.ended_at !== null);
  if (turn === undefined) {
    return <span className="text-muted">none yet</span>;
  }
  const text = (turn.result.success ? turn.result.text : (turn.result.error_message ?? "")).trim();
  const isLong = text.length > LONG_TEXT || text.split("\n").length > 6;
  return (
    <>
      <p
        className={cn(
          "break-words whitespace-pre-wrap",
          !turn.result.success && "text-failed",
          !isOpen && "line-clamp-6",
        )}
      >
        <SafeText limit={isOpen ? 20_000 : LONG_TEXT}>{text === "" ? "No text" : text}</SafeText>
      </p>
      {isLong && (
        <button
          type="button"
          className="min-h-6 text-sm text-accent hover:underline"
          onClick={() => {
            setOpen(!isOpen);
          }}
        >
          {isOpen ? "Show less" : "Show all"}
        </button>
      )}
      <EarlierTurns turns={attempt.turns.slice(0, attempt.turns.indexOf(turn))} />
    </>
  );
}

function EarlierTurns({ turns }: { turns: Attempt["turns"] }) {
  if (turns.length === 0) {
    return null;
  }
  return (
    <details className="mt-1 text-sm">
      <summary className="min-h-6 text-muted">
        {turns.length === 1 ? "1 earlier turn" : `${turns.length} earlier turns`}
      </summary>
      <ol className="mt-1 flex max-h-60 flex-col gap-2 overflow-y-auto">
        {turns.map((turn, index) => (
          <li key={turn.id} className="border-l-2 border-line-strong pl-2">
            <span className="text-muted">Turn {index + 1}</span>
            <p className={cn("line-clamp-4 break-words whitespace-pre-wrap", !turn.result.success && "text-failed")}>
              <SafeText limit={LONG_TEXT}>
                {turn.result.success ? turn.result.text : (turn.result.error_message ?? "")}
              </SafeText>
            </p>
          </li>
        ))}
      </ol>
    </details>
  );
}
