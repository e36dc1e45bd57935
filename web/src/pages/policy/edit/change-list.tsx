// What saving would change: each rule, hook and setting, before and after.
import { ArrowRight, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import { cn } from "@/design/classes";
import { SafeText } from "@/design/text/text";

import type { HookEntry } from "../model";
import { OUTCOME_MARKS, OutcomeMark, RuleText } from "../marks";
import { countChanges, type PolicyChanges } from "./changes";

interface Props {
  changes: PolicyChanges;
  /** What follows beyond the rules themselves. */
  consequence?: string | null;
}

export function ChangeList({ changes, consequence = null }: Props) {
  if (countChanges(changes) === 0) {
    return <p className="text-muted">Nothing is changed yet. The order of rules has no effect.</p>;
  }
  const { rules, addedHooks, removedHooks, hasOtherHookOrder, terms } = changes;
  return (
    <>
      <ul aria-label="Changed rules and settings" className="overflow-hidden rounded-md border">
        {rules.map(({ rule, from, to }) => (
          <Line
            key={`${rule} ${from ?? ""} ${to ?? ""}`}
            mark={from === null ? "added" : to === null ? "removed" : "moved"}
          >
            <span className="flex shrink-0 items-center gap-1.5">
              {from !== null && to !== null ? (
                <>
                  <span className="text-muted line-through">{OUTCOME_MARKS[from].rule}</span>
                  <ArrowRight aria-label="to" className="size-3.5 text-muted" />
                  <OutcomeMark outcome={to} of="rule" />
                </>
              ) : (
                <OutcomeMark outcome={to ?? from ?? "deny"} of="rule" />
              )}
            </span>
            <RuleText className="bg-transparent">{rule}</RuleText>
          </Line>
        ))}
        {removedHooks.map((hook) => (
          <Line key={`- ${JSON.stringify(hook)}`} mark="removed">
            <Hook hook={hook} />
          </Line>
        ))}
        {addedHooks.map((hook) => (
          <Line key={`+ ${JSON.stringify(hook)}`} mark="added">
            <Hook hook={hook} />
          </Line>
        ))}
        {hasOtherHookOrder && <Line mark="moved">The order or the groups of the hooks</Line>}
        {terms.map(({ title, before, after }) => (
          <Line key={title} mark="moved">
            <span className="text-muted">{title}</span>
            <SafeText className="text-muted line-through">{before}</SafeText>
            <ArrowRight aria-label="to" className="size-3.5 shrink-0 text-muted" />
            <SafeText className="font-medium">{after}</SafeText>
          </Line>
        ))}
      </ul>
      {consequence !== null && (
        <p className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
          <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
          {consequence}
        </p>
      )}
    </>
  );
}

const MARKS = {
  added: { sign: "+", title: "Added", color: "bg-added" },
  removed: { sign: "−", title: "Removed", color: "bg-removed" },
  moved: { sign: "~", title: "Changed", color: "" },
} as const;

function Line({ mark, children }: { mark: keyof typeof MARKS; children: ReactNode }) {
  const { sign, title, color } = MARKS[mark];
  return (
    <li className={cn("flex min-h-8 items-start gap-2 border-b px-3 py-1.5 last:border-b-0", color)}>
      <span className="w-3 shrink-0 text-center text-muted select-none">
        <span aria-hidden>{sign}</span>
        <span className="sr-only">{title}</span>
      </span>
      <span className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-0.5">{children}</span>
    </li>
  );
}

function Hook({ hook: { event, matcher, what } }: { hook: HookEntry }) {
  return (
    <>
      <span className="font-medium">Hook</span>
      <SafeText>{`${event}${matcher === "" ? "" : ` ${matcher}`}`}</SafeText>
      <RuleText className="bg-transparent">{what}</RuleText>
    </>
  );
}
