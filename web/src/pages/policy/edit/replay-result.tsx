// The result of a replay: counts of each change first, then the calls, each with a link to it.
import { Link } from "@tanstack/react-router";
import { ArrowRight } from "lucide-react";

import type { ChangedCall } from "@/api/queries/policy";
import { Time } from "@/design/components/time";
import { MessageText, SafeText } from "@/design/text/text";

import { layerTitle } from "../model";
import { OUTCOME_MARKS, OutcomeMark, RuleText } from "../marks";
import { describeDoubts, type ReplayTotals, type Transition, transitionKey } from "./replay";

interface Props {
  totals: ReplayTotals;
  /** The change whose calls are shown. Undefined: all. */
  selected: string | undefined;
  onSelect: (key: string | undefined) => void;
}

export function ReplayResult({ totals, selected, onSelect }: Props) {
  const { calls, unchanged, transitions, changed, oldestAt } = totals;
  const doubts = describeDoubts(totals);
  if (calls === 0 && totals.gone === 0) {
    return <p className="text-muted">There are no stored calls in this period that you can see.</p>;
  }
  const isKnown = transitions.some((one) => transitionKey(one) === selected);
  const shown = isKnown ? changed.filter((call) => transitionKey(call) === selected) : changed;
  return (
    <div role="status" aria-label="Result" className="flex flex-col gap-3">
      <p>
        <b>{(calls - unchanged).toLocaleString("en-US")}</b> of {calls.toLocaleString("en-US")} calls would be decided
        otherwise.
        {oldestAt !== null && (
          <span className="text-muted">
            {" "}
            The oldest is from <Time value={oldestAt} />.
          </span>
        )}
      </p>
      {transitions.length > 0 && (
        <ul aria-label="Counts" className="flex flex-wrap gap-2">
          {transitions.map((one) => (
            <li key={transitionKey(one)}>
              <button
                type="button"
                aria-pressed={transitionKey(one) === selected}
                className="flex h-8 items-center gap-2 rounded-md border px-2 hover:bg-hover aria-pressed:border-accent aria-pressed:bg-selected max-md:h-11"
                onClick={() => {
                  onSelect(transitionKey(one) === selected ? undefined : transitionKey(one));
                }}
              >
                <TransitionMark transition={one} />
                <b>{one.count.toLocaleString("en-US")}</b>
              </button>
            </li>
          ))}
        </ul>
      )}
      {doubts.length > 0 && <p className="text-sm text-muted">Not certain: {doubts.join("; ")}.</p>}
      {shown.length > 0 && (
        <ul aria-label="Changed calls" className="border-t">
          {shown.map((call) => (
            <Call key={call.event_id} call={call} />
          ))}
        </ul>
      )}
    </div>
  );
}

function TransitionMark({ transition: { was, would } }: { transition: Pick<Transition, "was" | "would"> }) {
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
      <span className="text-muted">{OUTCOME_MARKS[was].call}</span>
      <ArrowRight aria-label="to" className="size-3.5 text-muted" />
      <OutcomeMark outcome={would} of="call" />
    </span>
  );
}

function Call({ call }: { call: ChangedCall }) {
  const { name, mcp_server_name: server, summary, rule, layer, reason } = call;
  return (
    <li className="relative flex flex-col gap-0.5 border-b py-2 hover:bg-hover">
      <div className="flex flex-wrap items-center gap-x-3">
        <TransitionMark transition={call} />
        {rule !== null && (
          <span className="min-w-0 text-sm text-muted">
            <RuleText>{rule}</RuleText>
            {layer !== null && ` · ${layerTitle(layer)}`}
          </span>
        )}
        <Time value={call.created_at} className="ml-auto text-sm text-muted" />
      </div>
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: call.session_id }}
        search={{ event: call.event_id }}
        className="min-w-0 outline-offset-[-2px] after:absolute after:inset-0"
      >
        <span className="text-muted">
          <SafeText>{server === null ? name : `${server}/${name}`}</SafeText>{" "}
        </span>
        <SafeText className="font-mono text-sm break-all">{summary}</SafeText>
      </Link>
      <p className="text-sm break-words text-muted">
        <MessageText>{reason}</MessageText>
      </p>
    </li>
  );
}
