// The decision on a call, the rule that decides, the parts of a command, and all rules that were evaluated.
import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";

import type { ExplainedCall, Explanation } from "@/api/queries/policy";
import { cn } from "@/design/classes";
import { MessageText, SafeText } from "@/design/text/text";
import { ToolCall } from "@/pages/inbox/tool-call";

import { layerTitle, OUTCOMES } from "../model";
import { OUTCOME_MARKS, OutcomeMark, RuleText } from "../marks";

interface Props {
  call: ExplainedCall;
  explanation: Explanation;
  /** Whether it is that of the previous call, while the next one loads. */
  isOutdated: boolean;
}

type Decision = Pick<Explanation, "outcome" | "reason" | "rule" | "layer">;

export function Result({ call, explanation, isOutdated }: Props) {
  const { parts, layers, hook, depends_on_links: dependsOnLinks } = explanation;
  return (
    <div aria-busy={isOutdated} className={cn("flex flex-col gap-6", isOutdated && "opacity-50")}>
      <section aria-label="Decision" className="flex flex-col gap-3 border-t pt-4">
        <div className="flex flex-wrap items-center gap-x-3">
          <OutcomeMark outcome={explanation.outcome} of="call" className="text-lg" />
          <Source decision={explanation} />
        </div>
        <p className="break-words">
          <MessageText>{explanation.reason}</MessageText>
        </p>
        <ToolCall name={call.tool} input={call.input} />
        {hook !== null && (
          <Note>
            The hook <RuleText>{hook}</RuleText> would also run before this call. Its decision is not known.
          </Note>
        )}
        {dependsOnLinks && <Note>Symbolic links in the working tree can change this decision.</Note>}
      </section>
      {parts.length > 0 && (
        <section aria-label="Parts" className="flex flex-col gap-2">
          <h2 className="font-semibold">{parts.length === 1 ? "The command" : "Parts of the command"}</h2>
          {parts.length > 1 && (
            <p className="text-sm text-muted">The strictest decision applies to the whole command.</p>
          )}
          <ol className="border-t">
            {parts.map((part, index) => (
              <li
                key={index}
                className="grid grid-cols-[9rem_minmax(0,1fr)] gap-x-3 border-b py-2 max-md:grid-cols-1 max-md:gap-y-1"
              >
                <OutcomeMark outcome={part.outcome} of="call" className="self-start" />
                <div className="flex min-w-0 flex-col gap-1">
                  <div className="flex flex-wrap items-baseline gap-x-3">
                    <RuleText>{part.text}</RuleText>
                    <span className="text-sm text-muted">{part.kind}</span>
                    <Source decision={part} />
                  </div>
                  <p className="text-sm break-words text-muted">
                    <MessageText>{part.reason}</MessageText>
                  </p>
                  {part.via.length > 0 && (
                    <p className="text-sm text-muted">
                      Started by <SafeText>{part.via.join(", ")}</SafeText>
                      {part.runs.length > 0 && (
                        <>
                          , which runs <SafeText>{part.runs.join(", ")}</SafeText>
                        </>
                      )}
                    </p>
                  )}
                </div>
              </li>
            ))}
          </ol>
        </section>
      )}
      <section aria-label="Evaluated rules" className="flex flex-col gap-2">
        <h2 className="font-semibold">Evaluated rules</h2>
        {layers.length === 0 ? (
          <p className="text-muted">No layer has rules. Only the environment limits such a session.</p>
        ) : (
          <ul className="border-t">
            {layers.flatMap(({ layer, ...rules }) =>
              OUTCOMES.flatMap((outcome) =>
                rules[outcome].map((rule, index) => {
                  const isDeciding = [explanation, ...parts].some((one) => one.rule === rule && one.layer === layer);
                  return (
                    <li
                      key={`${layer} ${outcome} ${index}`}
                      aria-current={isDeciding ? "true" : undefined}
                      className="flex min-h-8 flex-wrap items-center gap-x-3 border-b border-l-2 border-l-transparent px-2 py-1 aria-[current]:border-l-accent aria-[current]:bg-selected"
                    >
                      <span className="w-28 shrink-0 text-muted">{layerTitle(layer)}</span>
                      <OutcomeMark outcome={outcome} of="rule" className="w-20" />
                      <RuleText className={isDeciding ? "bg-transparent" : ""}>{rule}</RuleText>
                      {isDeciding && <span className="ml-auto text-sm text-accent">applies</span>}
                    </li>
                  );
                }),
              ),
            )}
          </ul>
        )}
      </section>
    </div>
  );
}

/** The rule that decided and its layer, or that none did. */
function Source({ decision: { rule, layer, outcome } }: { decision: Decision }) {
  if (rule === null || layer === null) {
    return <span className="text-sm text-muted">by default or a built-in check</span>;
  }
  return (
    <span className="min-w-0 text-sm text-muted">
      {OUTCOME_MARKS[outcome].rule} rule <RuleText>{rule}</RuleText> · {layerTitle(layer)}
    </span>
  );
}

function Note({ children }: { children: ReactNode }) {
  return (
    <p className="flex items-start gap-2 rounded-md bg-waiting-soft px-3 py-2 text-waiting">
      <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
      <span className="min-w-0">{children}</span>
    </p>
  );
}
