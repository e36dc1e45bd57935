// Everything about one step: its text, references, condition, failure policy, output, and what can be done with it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowDown, ArrowUp, Inbox, MessageSquare, Pencil, RotateCw, Trash2 } from "lucide-react";
import type { ReactNode } from "react";

import { approvalsQuery } from "@/api/queries/inbox";
import type { Session } from "@/api/session-state";
import { Button, buttonStyle } from "@/design/components/button";
import { Time } from "@/design/components/time";
import { CodeBlock, SafeText } from "@/design/text/text";
import { GroupSessions } from "./group-sessions";
import { describeFailurePolicy, findReferences, isPending, isPlainPrompt, type Step, stepText } from "./model";
import { ResultForm } from "./result-form";
import type { StepCommands } from "./use-step-commands";

interface Props {
  session: Session;
  step: Step;
  steps: readonly Step[];
  refusal: string | null;
  commands: StepCommands;
}

const HAS_TEXT: readonly Step["kind"][] = ["prompt", "shell", "external"];

export function StepDetail({ session, step, steps, refusal, commands }: Props) {
  const repeated = steps.find((one) => one["retry_of"] === step.id);
  const original = steps.find((one) => one.id === step["retry_of"]);
  return (
    <>
      {HAS_TEXT.includes(step.kind) && stepText(step) !== "" && (
        <CodeBlock
          label="Step"
          className={step.kind === "shell" ? "bg-canvas" : "bg-canvas font-sans whitespace-pre-wrap"}
        >
          {stepText(step)}
        </CodeBlock>
      )}
      {step.kind === "parallel" && <GroupSessions session={session} step={step} />}
      <dl className="grid grid-cols-[8rem_1fr] gap-x-4 gap-y-1 text-sm max-md:grid-cols-[6rem_1fr]">
        {step.condition !== null && (
          <Fact title="Runs if">
            <SafeText className="font-mono break-words">{step.condition}</SafeText>
          </Fact>
        )}
        {findReferences(step).map((reference) => (
          <Fact key={reference.text} title="Uses">
            <SafeText className="font-mono break-all">{reference.text}</SafeText>{" "}
            <span className="text-muted">{describeSource(reference.step, steps)}</span>
          </Fact>
        ))}
        {step.state !== "completed" && step.state !== "skipped" && (
          <Fact title="If it fails">{describeFailurePolicy(step)}</Fact>
        )}
        {step.timeout_seconds !== null && <Fact title="Time limit">{step.timeout_seconds} s</Fact>}
        {step.attempt > 1 && <Fact title="Attempts">{step.attempt}</Fact>}
        {step.ends_session && <Fact title="Then">The session ends.</Fact>}
        {original !== undefined && <Fact title="Repeats">An earlier step that did not succeed.</Fact>}
        {repeated !== undefined && <Fact title="Repeated">A copy of it is further down.</Fact>}
        {step.result?.exit_code != null && <Fact title="Exit code">{step.result.exit_code}</Fact>}
        {step.started_at !== null && (
          <Fact title="Started">
            <Time value={step.started_at} />
          </Fact>
        )}
      </dl>
      <Output step={step} />
      {step.kind === "external" && step.state === "running" && (
        <ResultForm step={step} refusal={refusal} onSubmit={commands.submit} />
      )}
      <div className="flex flex-wrap gap-2">
        {isPending(step) && (
          <>
            {!step.is_message && (step.kind !== "prompt" || isPlainPrompt(step)) && step.kind !== "terminal" && (
              <Button
                shortcut="e"
                disabled={refusal !== null}
                onClick={() => {
                  commands.edit(step);
                }}
              >
                <Pencil aria-hidden /> Edit
              </Button>
            )}
            <Button
              disabled={refusal !== null}
              onClick={() => {
                commands.moveBy(step, -1);
              }}
            >
              <ArrowUp aria-hidden /> Move up
            </Button>
            <Button
              disabled={refusal !== null}
              onClick={() => {
                commands.moveBy(step, 1);
              }}
            >
              <ArrowDown aria-hidden /> Move down
            </Button>
            <Button
              variant="danger"
              shortcut="x"
              disabled={refusal !== null}
              onClick={() => {
                commands.remove(step);
              }}
            >
              <Trash2 aria-hidden /> Remove
            </Button>
          </>
        )}
        {(step.state === "failed" || step.state === "cancelled") && repeated === undefined && (
          <Button
            shortcut="t"
            disabled={refusal !== null}
            onClick={() => {
              commands.repeat(step);
            }}
          >
            <RotateCw aria-hidden /> Repeat
          </Button>
        )}
        {step.waiting_for === "action" && step.kind !== "external" && <ApprovalLink sessionId={session.id} />}
        {step.turn_id !== null && (
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: session.id }}
            search={{ tab: "conversation", turn: step.turn_id }}
            className={buttonStyle({ variant: "quiet" })}
          >
            <MessageSquare aria-hidden /> Open its turn
          </Link>
        )}
      </div>
    </>
  );
}

/** A step that needs approval is decided in the inbox, where the whole call and the rule are shown. */
function ApprovalLink({ sessionId }: { sessionId: string }) {
  const { data } = useQuery(approvalsQuery(sessionId));
  const id = data?.data[0]?.id;
  return (
    <Link to="/inbox" search={id === undefined ? {} : { item: id }} className={buttonStyle({ variant: "secondary" })}>
      <Inbox aria-hidden /> Decide in the inbox
    </Link>
  );
}

function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{title}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function describeSource(name: string, steps: readonly Step[]): string {
  const source = steps.findLast((step) => step.name === name);
  if (source === undefined) {
    return "no step has this name";
  }
  return { pending: "waits", running: "runs now" }[source.state as string] ?? source.state;
}

/** The result, as far as it has one. The text of a command is its output, so it is shown once. */
function Output({ step }: { step: Step }) {
  const { result } = step;
  if (result === null) {
    return null;
  }
  const parts = [
    { label: "Output", text: result.stdout },
    { label: "Standard error", text: result.stderr },
    { label: step.kind === "prompt" ? "Response" : "Summary", text: step.kind === "shell" ? "" : result.text },
  ].filter(({ text }, index, all) => text.trim() !== "" && all.findIndex((one) => one.text === text) === index);
  return (
    <>
      {result.error_message !== null && (
        <p className="text-failed">
          <SafeText className="break-words whitespace-pre-wrap">{result.error_message}</SafeText>
        </p>
      )}
      {parts.map(({ label, text }) => (
        <section key={label} className="flex flex-col gap-1">
          <h4 className="text-sm text-muted">{label}</h4>
          <CodeBlock label={label} className="max-h-80 bg-code whitespace-pre-wrap [overflow-wrap:anywhere]">
            {text}
          </CodeBlock>
        </section>
      ))}
    </>
  );
}
