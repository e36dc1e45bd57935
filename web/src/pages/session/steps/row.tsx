// One step: what it is, what it does, how it is doing. Its detail opens below.
import { ChevronRight, GripVertical } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";

import { SafeText } from "@/design/text/text";
import { cn } from "@/design/classes";
import { KindMark, StepDuration, StepState } from "./marks";
import { type Step, stepLabel, stepText } from "./model";

interface Props {
  step: Step;
  isSelected: boolean;
  isOpen: boolean;
  onToggle: () => void;
  /** Makes it movable: what the handle needs. */
  handle?: ComponentProps<"button"> | undefined;
  children?: ReactNode;
}

export function StepRow({ step, isSelected, isOpen, onToggle, handle, children }: Props) {
  const firstLine = stepText(step).trim().split("\n", 1)[0] ?? "";
  const isCode = step.kind === "shell";
  return (
    <div data-step={step.id} className={cn("border-b", isOpen && "bg-surface")}>
      <div
        data-selected={isSelected || undefined}
        className="flex items-stretch border-l-2 border-l-transparent data-selected:border-l-accent data-selected:bg-selected"
      >
        {handle === undefined ? (
          <span className="w-8 shrink-0 max-md:w-3" />
        ) : (
          <button
            type="button"
            {...handle}
            aria-label={`Move ${stepLabel(step)}`}
            className="flex w-8 shrink-0 cursor-grab touch-none items-center justify-center text-faint outline-offset-[-2px] hover:bg-hover hover:text-text active:cursor-grabbing max-md:w-11"
          >
            <GripVertical aria-hidden className="size-4" />
          </button>
        )}
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={onToggle}
          className="flex min-h-9 min-w-0 flex-1 items-center gap-x-3 py-1 pr-4 text-left outline-offset-[-2px] hover:bg-hover max-md:min-h-14 max-md:flex-wrap max-md:py-2"
        >
          <KindMark step={step} className="w-24 shrink-0 max-md:w-auto" />
          <span className="flex min-w-0 flex-1 items-baseline gap-2 max-md:order-last max-md:basis-full">
            {step.name !== null && <SafeText className="shrink-0 font-medium">{step.name}</SafeText>}
            <SafeText limit={300} className={cn("min-w-0 truncate text-muted", isCode && "font-mono text-sm")}>
              {firstLine}
            </SafeText>
          </span>
          <Notes step={step} />
          <StepState step={step} className="w-36 shrink-0 max-md:ml-auto max-md:w-auto" />
          <StepDuration step={step} className="w-14 shrink-0 text-right text-muted max-md:w-auto" />
          <ChevronRight
            aria-hidden
            className={cn("size-4 shrink-0 text-faint transition-transform max-md:hidden", isOpen && "rotate-90")}
          />
        </button>
      </div>
      {isOpen && <div className="flex flex-col gap-3 px-8 pt-1 pb-4 max-md:px-4">{children}</div>}
    </div>
  );
}

/** What is unusual about the step, in few words. */
function Notes({ step }: { step: Step }) {
  const notes = [
    step.condition !== null ? "if" : null,
    step.max_attempts > 1 && step.on_failure === "retry" && step.attempt > 0
      ? `attempt ${step.attempt} of ${step.max_attempts}`
      : null,
    step.result?.exit_code !== null && step.result?.exit_code !== undefined && step.result.exit_code !== 0
      ? `exit ${step.result.exit_code}`
      : null,
    step["terminal"] === true ? "on the terminal" : null,
  ].filter((note) => note !== null);
  return notes.length === 0 ? null : (
    <span className="shrink-0 text-sm text-muted max-lg:max-md:hidden" title={step.condition ?? undefined}>
      {notes.join(" · ")}
    </span>
  );
}
