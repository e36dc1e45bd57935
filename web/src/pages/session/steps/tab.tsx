// Steps: what the session did, does and will do, one after the other; with the controls of the queue.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect, useState } from "react";

import type { Session } from "@/api/session-state";
import { Button } from "@/design/components/button";
import { EmptyState } from "@/design/components/empty-state";
import { ErrorPanel } from "@/design/components/error-panel";
import { SkeletonRows } from "@/design/components/skeleton";
import { useListKeys } from "@/frame/use-list-keys";
import { StepDetail } from "./detail";
import { splitQueue, type Step } from "./model";
import { useMovesOfOthers } from "./other-windows";
import { useRefusal } from "./permission";
import { PlaybackBar } from "./playback";
import { stepsQuery } from "./queries";
import { Queue } from "./queue";
import { StepRow } from "./row";
import { StepDialog } from "./step-dialog";
import { useSelectedStepActions, useStepCommands } from "./use-step-commands";

const route = getRouteApi("/frame/sessions/$sessionId");
/** Of the ended steps, only the last ones are shown at first: what matters is what comes. */
const SHOWN_ENDED = 8;
const NO_STEPS: readonly Step[] = [];

export default function StepsTab({ session }: { session: Session }) {
  const { step: wanted } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: steps = NO_STEPS, error, isPending, refetch } = useQuery(stepsQuery(session.id));
  const refusal = useRefusal(session);
  const { ended, running, pending } = splitQueue(steps);
  const commands = useStepCommands(session, pending, refusal);
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(wanted === undefined ? [] : [wanted]));
  const [showsAll, setShowsAll] = useState(false);
  useMovesOfOthers(session.id, steps);

  const wantedIsEarly = ended.slice(0, -SHOWN_ENDED).some((step) => step.id === wanted);
  const shownEnded = showsAll || wantedIsEarly ? ended : ended.slice(-SHOWN_ENDED);
  const visible = [...shownEnded, ...running, ...pending];
  const selected = steps.find((step) => step.id === wanted);

  function select(id: string): void {
    void navigate({ search: (search) => ({ ...search, step: id }), replace: true });
  }
  function toggle(step: Step): void {
    const next = new Set(open);
    if (!next.delete(step.id)) {
      next.add(step.id);
    }
    setOpen(next);
    select(step.id);
  }
  useListKeys({
    next: "session.next-step",
    previous: "session.previous-step",
    open: "session.open-step",
    count: visible.length,
    selected: visible.findIndex((step) => step.id === wanted),
    onSelect: (index) => {
      const step = visible[index];
      if (step !== undefined) {
        select(step.id);
      }
    },
    onOpen: (index) => {
      const step = visible[index];
      if (step !== undefined) {
        toggle(step);
      }
    },
  });
  useSelectedStepActions(session, selected, steps, refusal, commands);
  useEffect(() => {
    if (wanted !== undefined) {
      document.querySelector(`[data-step="${CSS.escape(wanted)}"]`)?.scrollIntoView({ block: "nearest" });
    }
  }, [wanted]);

  const renderRow = (step: Step, handle?: ComponentProps<"button">): ReactNode => (
    <StepRow
      key={step.id}
      step={step}
      isSelected={step.id === wanted}
      isOpen={open.has(step.id)}
      onToggle={() => {
        toggle(step);
      }}
      handle={handle}
    >
      <StepDetail session={session} step={step} steps={steps} refusal={refusal} commands={commands} />
    </StepRow>
  );
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <PlaybackBar session={session} refusal={refusal} />
      <div className="min-h-0 flex-1 overflow-y-auto">
        {isPending && <SkeletonRows />}
        {error !== null && steps.length === 0 && (
          <ErrorPanel
            className="m-4"
            title="The steps could not be loaded"
            error={error}
            onRetry={() => void refetch()}
          />
        )}
        {!isPending && error === null && steps.length === 0 && (
          <EmptyState
            title="No steps yet"
            command={`footplate steps add --session ${session.id} --shell "make test" --name tests`}
          >
            Queue prompts and commands here. They run one after the other, and you can pause between them.
          </EmptyState>
        )}
        {shownEnded.length > 0 && (
          <Part title="Done" count={ended.length}>
            {shownEnded.length < ended.length && (
              <button
                type="button"
                className="h-9 w-full border-b text-accent outline-offset-[-2px] hover:bg-hover max-md:h-11"
                onClick={() => {
                  setShowsAll(true);
                }}
              >
                Show {ended.length - shownEnded.length} earlier
              </button>
            )}
            {shownEnded.map((step) => renderRow(step))}
          </Part>
        )}
        {running.length > 0 && <Part title="Now">{running.map((step) => renderRow(step))}</Part>}
        {pending.length > 0 && (
          <Part title="Waiting" count={pending.length}>
            <Queue
              pending={pending}
              canMove={refusal === null && pending.length > 1}
              onMove={commands.moveTo}
              renderRow={renderRow}
            />
          </Part>
        )}
        <div className="px-4 py-3">
          <Button
            shortcut="a"
            disabled={refusal !== null}
            title={refusal ?? undefined}
            className="max-md:h-11 max-md:w-full"
            onClick={() => {
              commands.add(null);
            }}
          >
            <Plus aria-hidden /> Add a step
          </Button>
        </div>
      </div>
      {commands.dialog !== null && <StepDialog session={session} state={commands.dialog} commands={commands} />}
    </div>
  );
}

function Part({ title, count, children }: { title: string; count?: number; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h3 className="border-b bg-surface px-4 py-1 text-sm font-medium text-muted">
        {title}
        {count !== undefined && <span className="ml-2 font-normal">{count}</span>}
      </h3>
      {children}
    </section>
  );
}
